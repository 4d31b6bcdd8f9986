#include "baton/elector.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "election/campaign.h"

namespace baton {
namespace {

// How much longer than the grace a destructor waits for the work, and for the store to be told.
constexpr Millis kFarewell{5'000};

void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  signal.wait(lock, stop, [] { return false; });
}

}  // namespace

Elector::Elector(LockClient locks, std::string_view name, ElectorOptions options)
    : campaign_(std::make_shared<election::Campaign>(std::move(locks), name, std::move(options))) {}

Elector::~Elector() {
  if (campaign_->inherited()) {
    // A forked child: the thread is not here, and what it held is the parent's.
    new auto(std::move(campaign_));
    new auto(std::move(thread_));
    return;
  }
  campaign_->request_stop();
  const Instant limit = campaign_->clock().now() + campaign_->options().grace + kFarewell;
  const bool over = campaign_->wait_until_over(limit);
  if (!thread_.joinable()) return;
  if (over) {
    thread_.join();
  } else {
    thread_.detach();  // its work does not listen; it has a share in all that it needs
  }
}

Result<void> Elector::run(const Work& work, const std::stop_token& stop) {
  const auto campaign = campaign_;
  return campaign->run(work, stop);
}

Result<void> Elector::start(ElectorCallbacks callbacks) {
  if (auto ok = campaign_->check(); !ok) return ok;
  auto work = [callbacks = std::move(callbacks)](Leadership& term, const std::stop_token& stop) {
    if (callbacks.on_elected) callbacks.on_elected(term);
    wait_for(stop);
    if (callbacks.on_lost) callbacks.on_lost(term, term.why_ending());
  };
  if (thread_.joinable()) {
    return Error{.code = Code::bad_request, .message = "the elector was started before"};
  }
  campaign_->expect_run();
  thread_ = std::thread([campaign = campaign_, work = std::move(work)] {
    if (auto ended = campaign->run(work, {}); !ended) campaign->report(ended.error());
  });
  return {};
}

void Elector::stop() {
  campaign_->request_stop();
  campaign_->wait_until_over(Instant::max());
}

bool Elector::is_leader() const { return campaign_->is_leader(); }
Result<std::optional<Leader>> Elector::leader() { return campaign_->leader(); }
bool Elector::resign() { return campaign_->resign(); }
Result<void> Elector::transfer(const std::string& node) { return campaign_->transfer(node); }

}  // namespace baton
