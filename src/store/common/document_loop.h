#pragma once

// Runs the core in every client, for stores that keep a document a name and can only replace it if
// nobody else did in between: read, apply, write back on condition; on a conflict, again.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/apply.h"

namespace baton::store {

// Tokens and turns are drawn as (version - 1) * kDraws + n, where the version is that of the write
// that keeps them. It is not known before: until then they are kPending + n, also in the document
// as written, and every reader works it out from the document's version (resolve). A store whose
// versions change without its doing says a version itself instead: Snapshot::base.
inline constexpr std::uint64_t kDraws = 1 << 16;
inline constexpr std::uint64_t kPending = std::uint64_t{1} << 62;

// Data of the store about a document that it read, which it needs to replace the document.
struct Provenance {
  virtual ~Provenance() = default;
};

// A name as one reading found it.
struct Document {
  core::NameState state;      // in times of the local clock; what is dead has expired by `now`
  std::uint64_t version = 0;  // 0: there is no document
  std::string damage;         // what is wrong with it, in words
  std::shared_ptr<const Provenance> provenance;
};

struct Snapshot {
  std::map<std::string, Document> documents;  // of every key that was asked for
  core::StoreTime now{0};                     // of the store's clock, when they were read
  std::uint64_t base = 0;                     // draws start above it; 0: at kPending
  bool guessed = false;                       // nobody was asked: only a write can prove it
};

// Requests that are answered in one go, and the names they touch, the schema's included.
struct Group {
  std::vector<const Request*> requests;
  std::vector<std::string> keys;  // sorted
};

// The result of applying requests to a snapshot.
struct Step {
  const Group& group;
  const Snapshot& found;
  std::map<std::string, core::NameState> states;  // dirty: changed in a way that must be kept
  std::vector<Reply> replies;                     // one a request
  std::vector<core::Wake> wakes;
  bool drew = false;  // tokens or turns were drawn: even if nothing of it is left, a write must use
                      // up the version they came from

  // Keys of `states` that are dirty, sorted.
  [[nodiscard]] std::vector<std::string> dirty() const;
};

struct Commit {
  enum class End {
    done,
    conflict,   // somebody was faster; nothing is written
    unproven,   // the snapshot was a guess, and there is nothing to write that would prove it
    too_large,  // the store refuses to keep so much; nothing is written
    no_trace    // all as it was before, so the store did not use up the version that was drawn from
  };
  End end = End::done;
  std::uint64_t version = 0;      // done: of the write; 0 if there was none, or it left nothing
  std::optional<Snapshot> found;  // conflict: what is there instead, if the answer said so
};

// The interface that a store implements. Called from several threads.
class Documents {
 public:
  virtual ~Documents() = default;

  // The documents of group.keys. With `may_guess` it may give what it believes without asking.
  virtual Result<Snapshot> read(const Group& group, bool may_guess, Deadline deadline) = 0;

  // Makes the step true, all of it or nothing, if nothing of what was found has changed since. Also
  // called for a step that has nothing to write: then the store may have claimants to keep alive.
  // An Error with in_doubt: it may have been written.
  virtual Result<Commit> commit(const Step& step, Deadline deadline) = 0;
};

// Pending draws get the version of the write that kept them.
void resolve(core::NameState& state, std::uint64_t version);
[[nodiscard]] constexpr std::uint64_t resolved(std::uint64_t draw, std::uint64_t version) {
  return draw < kPending || version == 0 ? draw : draw - kPending + (version - 1) * kDraws;
}

class DocumentLoop {
 public:
  struct Limits {
    std::size_t max_set = kMaxSet;    // names in one request; more are `unsupported`
    std::size_t names_per_write = 1;  // targets of all requests in one group
  };
  DocumentLoop(Documents& documents, Limits limits) : documents_(documents), limits_(limits) {}

  // As LockStore::apply. A name that others keep changing until the deadline is `busy`.
  [[nodiscard]] Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline);

 private:
  struct Answers;
  [[nodiscard]] Result<void> run(const std::vector<std::size_t>& chosen, Deadline deadline,
                                 Answers& answers);
  [[nodiscard]] Result<void> run_each(const std::vector<std::vector<std::size_t>>& parts,
                                      Deadline deadline, Answers& answers);

  Documents& documents_;
  const Limits limits_;
};

}  // namespace baton::store
