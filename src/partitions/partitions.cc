#include "baton/partitions.h"

#include <exception>
#include <utility>

#include "core/bad_request.h"
#include "partitions/member.h"

namespace baton {
namespace {

// How much longer than the grace a destructor waits for the work, and for the store to be told.
constexpr Millis kFarewell{5'000};

}  // namespace

Partitions::Partitions(LockClient locks, std::string_view set, std::size_t count,
                       PartitionOptions options)
    : member_(
          std::make_shared<partitions::Member>(std::move(locks), set, count, std::move(options))) {}

Partitions::~Partitions() {
  if (member_->inherited()) {
    // A forked child: the threads are not here, and what they held is the parent's.
    new auto(std::move(member_));
    new auto(std::move(thread_));
    return;
  }
  member_->request_stop();
  const bool over = member_->wait_until_over(member_->clock().now() + member_->grace() + kFarewell);
  if (!thread_.joinable()) return;
  if (over) {
    thread_.join();
  } else {
    thread_.detach();  // its work does not listen; it has a share in all that it needs
  }
}

Result<void> Partitions::run(const Work& work, const std::stop_token& stop) {
  const auto member = member_;
  return member->run(work, stop);
}

Result<void> Partitions::start(Work work) {
  if (auto ok = member_->check(); !ok) return ok;
  if (thread_.joinable()) return bad_request("the partitions were started before");
  member_->expect_run();
  try {
    thread_ = std::thread([member = member_, work = std::move(work)] {
      if (auto ended = member->run(work, {}); !ended) member->report(ended.error());
    });
  } catch (const std::exception& problem) {
    member_->expect_no_run();
    return Error{.code = Code::unavailable,
                 .message = std::string("no thread could be started: ") + problem.what(),
                 .retryable = true};
  }
  return {};
}

void Partitions::stop() {
  member_->request_stop();
  member_->wait_until_over(Instant::max());
}

std::vector<std::size_t> Partitions::owned() const { return member_->owned(); }

}  // namespace baton
