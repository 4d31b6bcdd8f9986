#include "baton/lease.h"

#include "runtime/held_lease.h"
#include "runtime/inherited.h"

namespace baton {

Lease::Lease(std::shared_ptr<void> client, std::shared_ptr<runtime::HeldLease> held)
    : client_(std::move(client)), held_(std::move(held)) {}

Lease::~Lease() {
  if (held_ == nullptr) return;
  try {
    if (held_->inherited()) {
      runtime::keep_for_ever(std::move(held_));
      runtime::keep_for_ever(std::move(client_));
      return;
    }
    held_->let_go();
  } catch (...) {  // NOLINT: out of memory; the lock expires
  }
}

Lease& Lease::operator=(Lease&& other) noexcept {
  Lease old(std::move(other));
  std::swap(client_, old.client_);
  std::swap(held_, old.held_);
  return *this;
}

bool Lease::valid() const { return held_ != nullptr && held_->valid(); }
Millis Lease::remaining() const { return held_ == nullptr ? Millis(0) : held_->remaining(); }
std::stop_token Lease::lost() const { return held_->lost(); }
std::string Lease::why_lost() const { return held_->why_lost(); }
const LockName& Lease::name() const { return held_->name(); }
const std::string& Lease::key() const { return held_->key(); }
Mode Lease::mode() const { return held_->mode(); }
Token Lease::token() const { return held_->token(); }
std::vector<FenceToken> Lease::tokens() const { return held_->tokens(); }
GrantId Lease::grant() const { return held_->id(); }
Millis Lease::ttl() const { return held_->ttl(); }
Note Lease::note() const { return held_->note(); }

Result<void> Lease::set_note(NoteChange change, Millis timeout) {
  return held_->set_note(std::move(change), timeout);
}

Result<void> Lease::convert(Mode mode, Millis wait) { return held_->convert(mode, wait); }

Result<void> Lease::release(const ReleaseOptions& options) { return held_->release(options); }

void Lease::release_async(std::function<void(Result<void>)> then, NoteChange final_note) {
  held_->release_async(std::move(final_note), std::move(then));
}

}  // namespace baton
