#include "election/term.h"

#include "baton/elector.h"

namespace baton::election {

Term::Term(std::string election, Lease lease, Clock& clock, OnEnd on_end)
    : election_(std::move(election)),
      lease_(std::move(lease)),
      clock_(clock),
      on_end_(std::move(on_end)),
      began_(clock.now()) {}

void Term::end(Ending ending, std::string successor) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = ending;
    ended_at_ = clock_.now();
    successor_ = std::move(successor);
  }
  // Outside the lock: it runs the callbacks of the work.
  stop_.request_stop();
  on_end_();
}

std::optional<Ending> Term::ending() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

Instant Term::ended_at() const {
  const std::lock_guard lock(mutex_);
  return ended_at_;
}

std::string Term::successor() const {
  const std::lock_guard lock(mutex_);
  return successor_;
}

std::string Term::why() const {
  const auto ended = ending();
  if (!ended) return {};
  switch (*ended) {
    case Ending::returned: return "the work has returned";
    case Ending::failed: return "the work has failed";
    case Ending::resigned: return "resigned";
    case Ending::transferred: return "transferred to " + successor();
    case Ending::unfit: return "not fit to lead";
    case Ending::stopped: return "stopped";
    case Ending::lost: break;
  }
  return lease_.why_lost();
}

}  // namespace baton::election

namespace baton {

Token Leadership::term() const { return term_->lease().token(); }
const std::string& Leadership::election() const { return term_->election(); }
bool Leadership::valid() const { return term_->valid(); }
std::string Leadership::why_ending() const { return term_->why(); }
void Leadership::resign() { term_->end(election::Ending::resigned); }
Lease& Leadership::lease() { return term_->lease(); }
std::vector<FenceToken> Leadership::tokens() const { return term_->lease().tokens(); }
const std::string& Leadership::key() const { return term_->lease().key(); }
Mode Leadership::mode() const { return term_->lease().mode(); }

}  // namespace baton
