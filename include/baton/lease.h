#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/fence_token.h"
#include "baton/name.h"
#include "baton/store.h"

namespace baton {

class LockClient;
namespace runtime {
class HeldLease;
}

struct ReleaseOptions {
  NoteChange note;  // last words, written with the release, once or not at all
  std::string to;   // hand over to a waiter of this owner, out of turn
  Millis timeout{2000};
};

// A lock that is held, renewed in the background until it is released, lost or destroyed. Movable;
// the destructor releases, and waits for that for at most 2 s; on a thread of the client, in a
// callback, it does not wait. All members may be called from any thread.
//
// In a forked child the leases of its parent are not valid, every call answers `lost`, token() is
// 0, and the destructor does nothing.
//
// Trust it like this: before an effect that nothing else protects, ask valid(); during long work
// watch lost(); in a database transaction call baton::fence first. Only the last is safe against a
// process that is paused between asking and acting.
class BATON_EXPORT Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<void> client, std::shared_ptr<runtime::HeldLease> held);
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  // True while nobody else can have been granted this lock, by the clock of this machine.
  [[nodiscard]] bool valid() const;

  // For how long valid() stays true if no renewal comes through any more. A small value does not
  // mean that there is no time for long work: renewals go on.
  [[nodiscard]] Millis remaining() const;

  // Fires before anyone else can be granted the lock: when it could not be renewed in time, was
  // broken, or was released. What a std::stop_callback does then, it does on the thread that keeps
  // all leases of the client, or on the one that releases: it must not block, or others hear too
  // late that theirs are lost, and if it throws, the process ends.
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] std::string why_lost() const;

  [[nodiscard]] const LockName& name() const;
  [[nodiscard]] const std::string& key() const;
  [[nodiscard]] Mode mode() const;
  [[nodiscard]] Token token() const;  // of the name itself

  // Of every name of the set, in its order, and then of every ancestor of them: what
  // baton::fence(transaction, lease) checks and records.
  [[nodiscard]] std::vector<FenceToken> tokens() const;
  [[nodiscard]] GrantId grant() const;
  [[nodiscard]] Millis ttl() const;

  // The note as the grant found it, or as this lease last wrote it.
  [[nodiscard]] Note note() const;

  // Blocks for `timeout`. `lost` means that it was not written; in doubt, it may have been.
  Result<void> set_note(NoteChange change, Millis timeout = Millis(2000));

  // Up to the supremum of both modes, or down if the held mode covers the asked one; the rules of
  // the policy hold for the mode that it ends in. `wait` is at most 24 h.
  //
  // The lease never claims more than the store keeps for it: going down, mode() is the lower one
  // before anybody else is let in; going up, the higher one once it is granted, with a new token.
  // On an error the mode is as before, but for Error::in_doubt: nobody could find out whether the
  // store made the change. Then the lease has the lower of both modes, and the client goes on until
  // the store agrees; meanwhile others may be kept out by the higher one.
  //
  // One at a time: while another convert of this lease is under way, or left in doubt, it is busy.
  // Blocks for `wait`, and for one request that is under way when the wait ends.
  Result<void> convert(Mode mode, Millis wait = Millis(0));

  // After it returns without an error, the lock is free for the next. `lost` means that it already
  // was, and that the note was not written. Blocks for `timeout` in all. If the store has not
  // answered by then, it is unavailable and in doubt: the client goes on releasing in the
  // background, note included, until the lease would have ended by itself.
  Result<void> release(const ReleaseOptions& options = {});

  // The same without waiting for the store. `then` runs on a thread of the client: it must not
  // block, and if it throws, the process ends.
  void release_async(std::function<void(Result<void>)> then = nullptr, NoteChange final_note = {});

  explicit operator bool() const { return held_ != nullptr; }

 private:
  friend class LockClient;
  std::shared_ptr<void> client_;  // outlives the lease: it is what renews it
  std::shared_ptr<runtime::HeldLease> held_;
};

}  // namespace baton
