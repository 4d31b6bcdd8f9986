#include "capi/held.h"

#include <utility>

namespace baton::capi {
namespace {

class HeldLock final : public Held {
 public:
  explicit HeldLock(Lease lease) : lease_(std::move(lease)) {}

  Lease& lease() override { return lease_; }
  bool valid() override { return lease_.valid(); }
  std::string why_lost() override { return lease_.why_lost(); }
  Result<void> release(const ReleaseOptions& options) override { return lease_.release(options); }

 protected:
  std::stop_token ends() override { return lease_.lost(); }

 private:
  Lease lease_;
};

// The lease of a term is the elector's: what ends here is the work.
class HeldTerm final : public Held {
 public:
  HeldTerm(Leadership term, std::stop_token ends, std::function<void()> ended)
      : term_(std::move(term)), ends_(std::move(ends)), ended_(std::move(ended)) {}
  ~HeldTerm() override { end(); }

  Lease& lease() override { return term_.lease(); }
  bool valid() override { return term_.valid(); }
  std::string why_lost() override { return term_.why_ending(); }

  Result<void> release(const ReleaseOptions& options) override {
    if (!options.to.empty() || !options.note.empty()) {
      return bad_request("a term is released without options");
    }
    const bool valid = term_.valid();
    const std::string why = term_.why_ending();
    end();
    if (valid) return {};
    return Error{.code = Code::lost, .message = "the term had ended: " + why};
  }

 protected:
  std::stop_token ends() override { return ends_; }

 private:
  void end() {
    std::call_once(once_, [&] { ended_(); });
  }

  Leadership term_;
  std::stop_token ends_;
  std::function<void()> ended_;
  std::once_flag once_;
};

}  // namespace

Result<int> Held::fd() {
  const std::lock_guard lock(mutex_);
  if (!event_.is_open()) {
    if (auto opened = event_.open(); !opened) return opened.error();
    on_end_.emplace(ends(), Fire{&event_});
  }
  return event_.fd();
}

baton_lease* new_lease(Lease lease) {
  return new_handle<baton_lease>(std::shared_ptr<Held>(new HeldLock(std::move(lease))));
}

baton_lease* new_term(Leadership term, std::stop_token ends, std::function<void()> ended) {
  return new_handle<baton_lease>(
      std::shared_ptr<Held>(new HeldTerm(std::move(term), std::move(ends), std::move(ended))));
}

}  // namespace baton::capi
