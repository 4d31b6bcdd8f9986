#pragma once

// The seam between Baton and whatever remembers its locks. A store takes batches of requests and
// gives a reply to each; src/core/apply.h says, as executable code, what every reply must be.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "baton/grant_id.h"
#include "baton/mode.h"
#include "baton/result.h"

namespace baton {

using Token = std::uint64_t;
using Metadata = std::map<std::string, std::string>;

inline constexpr Millis kMaxTtl = std::chrono::hours(24);
inline constexpr Millis kMaxWait = std::chrono::hours(24);
inline constexpr std::size_t kMaxSet = 64;                     // names in one request
inline constexpr std::size_t kMaxNoteBytes = 4096;             // for users
inline constexpr std::size_t kMaxReservedNoteBytes = 1 << 18;  // for the schema
inline constexpr std::size_t kMaxMetadataBytes = 4096;
inline constexpr std::size_t kMaxTextBytes = 1024;  // owner, channel, reason
inline constexpr std::size_t kMaxHoldersShown = 8;  // in a busy or queued reply

// What a name remembers after its holder is gone.
struct Note {
  std::int64_t ordinal = 0;
  std::string text;
  bool operator==(const Note&) const = default;
};

struct NoteChange {
  std::optional<std::int64_t> ordinal;
  std::optional<std::string> text;
  [[nodiscard]] bool empty() const { return !ordinal && !text; }
  bool operator==(const NoteChange&) const = default;
};

enum class Verb : std::uint8_t {
  acquire,  // hold all targets, or queue for them (queue_ttl > 0), or neither. Repeating it is
            // harmless: a grant that is already held is granted again with its time renewed
  claim,    // a waiter asks for its turn; queue_ttl > 0 also refreshes its place in the queue
  renew,    // hold on for another ttl; an expired or revoked grant is never renewed
  convert,  // change the modes of a held grant
  release,  // end a grant; `to` hands a single name to a waiter of that owner, out of turn
  cancel,   // undo an acquire whose fate is unknown, or leave a queue; or, with `converting`,
            // only give up a pending convert
  break_,   // revoke every holder of targets[0] (or only `grant`): it is free once they have
            // acknowledged or expired; with `immediately`, at once
  get,      // look at targets[0]
};

struct Target {
  std::string key;  // key_of(name)
  Mode mode = Mode::X;
  bool operator==(const Target&) const = default;
};

// One request. targets[0] is the name itself: notes and ordinals are its. The rest of the targets
// are its ancestors or the other names of a set. Renew, release, convert and cancel repeat the
// targets of the grant.
struct Request {
  Verb verb = Verb::get;
  GrantId grant;
  std::vector<Target> targets;
  std::string predicate;    // acquire: what the holder does
  std::string owner;        // acquire: which node, for people and for `to`
  std::string channel;      // acquire: whom to wake, unique per process
  Metadata metadata;        // acquire
  Millis ttl{0};            // acquire
  Millis queue_ttl{0};      // acquire, claim, convert: a place in the queue kept so long
  Millis claim_within{0};   // acquire: how long a promoted waiter may take to claim
  Millis at_least_for{0};   // acquire: stays taken so long even if released before
  Millis tombstone_ttl{0};  // cancel: an acquire of this grant that comes within this fails
  std::optional<std::int64_t> if_ordinal_below;  // acquire: else superseded
  NoteChange change;                             // acquire, renew, release
  std::int64_t schema_version = 0;               // acquire, claim, convert
  std::string to;                                // release
  std::string reason;                            // break
  bool immediately = false;                      // break
  bool converting = false;                       // cancel
};

enum class Outcome : std::uint8_t {
  granted,  // acquire, claim, renew, convert: held for ttl from when the request was sent
  queued,   // acquire, claim, convert: has a place in the queue; ask again when woken or after
            // retry_after
  busy,     // acquire, convert without queue_ttl. Any verb: somebody keeps the store from touching
            // this name for the moment; nothing has happened, ask again
  superseded,  // acquire, claim
  denied,      // schema version differs; nobody of that owner waits; see message
  deadlock,    // convert
  lost,        // the grant is not (or no longer) there
  done,        // release, cancel, break, get
  invalid,     // the request breaks a rule; see message
  unsupported,
};

[[nodiscard]] BATON_EXPORT std::string_view to_string(Outcome outcome);
[[nodiscard]] BATON_EXPORT std::string_view to_string(Verb verb);

struct HolderInfo {
  GrantId grant;
  Mode mode = Mode::X;
  Token token = 0;
  std::string predicate;
  std::string owner;
  Metadata metadata;
  Millis ttl{0};
  Millis held_for{0};
  Millis expires_in{0};
  bool claimed = true;    // false: handed to a waiter that has not come for it yet
  bool released = false;  // true: only its at-least-for time is left
  bool revoked = false;
  std::string reason;  // why it was revoked
};

struct WaiterInfo {
  GrantId grant;
  Mode mode = Mode::X;
  std::string predicate;
  std::string owner;
  bool converting = false;
};

struct LockInfo {
  std::string key;
  std::vector<HolderInfo> holders;
  std::vector<WaiterInfo> waiters;  // in the order of the queue; at most Query::max_waiters
  std::size_t waiting = 0;          // how many wait in all
  Note note;
  std::string damage;  // not empty: what the store keeps cannot be read, for this reason; nothing
                       // else is known, and every request for the name is denied
};

struct Reply {
  Outcome outcome = Outcome::invalid;
  std::vector<Token> tokens;        // granted: one a target, in the same order
  Note note;                        // granted: the note of targets[0] as this request found it
  std::vector<HolderInfo> holders;  // busy, queued, deadlock: who is in the way; break: who was hit
  Millis retry_after{0};            // busy, queued: nothing changes earlier without a release
  std::string message;              // denied, lost, invalid, unsupported
  std::optional<LockInfo> info;     // get
};

// Which names to show. Empty fields match everything.
struct Query {
  std::string region;
  std::string subject;
  std::vector<std::string> resources;  // a prefix of the path
  std::string predicate;               // of a holder or waiter
  std::optional<Mode> mode;            // of a holder or waiter
  std::string owner;                   // of a holder or waiter
  bool idle = false;                   // also names that only keep a note
  std::size_t limit = 1000;
  std::size_t max_waiters = 16;
  std::string after;  // page on from here: Page::next
};

template <typename T>
struct Page {
  std::vector<T> items;  // ordered by key
  std::string next;      // empty on the last page
};

struct Capabilities {
  std::vector<Mode> modes{kAllModes.begin(), kAllModes.end()};
  bool notes = true;
  bool convert = true;
  bool transfer = true;
  std::size_t max_waiters = 0;  // 0: as many as memory holds
  std::size_t max_set = kMaxSet;
  Millis min_ttl{500};
  Millis apply_limit{5000};    // no request takes effect later than this after it was sent
  bool needs_batching = true;  // false: a call costs less than gathering calls would
  std::size_t parallel = 1;    // how many batches are worth having in flight
  bool batched_gets = false;   // a batch of gets costs about as much as one of them
  std::string clock;           // in words, for `baton store status`
};

// Told that something may have changed for these grants; none named means for any of the channel.
// Called from a thread of the store: must not block, and must not call the store.
class BATON_EXPORT WakeSink {
 public:
  virtual ~WakeSink() = default;
  virtual void wake(std::span<const GrantId> grants) = 0;
};

// Ends the subscription when destroyed; after that the sink is not called any more.
class BATON_EXPORT Watch {
 public:
  virtual ~Watch() = default;
};

// Thread-safe. Every call returns by its deadline. An Error means that no reply is known for any
// request of the batch; Error::in_doubt says whether some may have taken effect. One bad request
// never harms the others.
class BATON_EXPORT LockStore {
 public:
  virtual ~LockStore() = default;
  virtual Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) = 0;
  virtual Result<Page<LockInfo>> find(const Query& query, Deadline deadline) = 0;

  // Wake-ups for requests made with this channel. They are hints, never needed for safety or
  // progress.
  virtual std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) = 0;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
};

}  // namespace baton
