#include "partitions/member.h"

#include <algorithm>
#include <utility>

#include "core/bad_request.h"
#include "core/permanent_error.h"

namespace baton::partitions {
namespace {

constexpr Millis kFirstBackoff{1'000};
constexpr Millis kMostBackoff{30'000};

}  // namespace

Member::Member(LockClient locks, std::string_view set, std::size_t count, PartitionOptions options)
    : locks_(std::move(locks)),
      name_(set),
      count_(count),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      set_(parse_set(name_, options_.region)),
      can_transfer_(locks_.capabilities().transfer),
      after_failure_(kFirstBackoff, kMostBackoff) {}

Result<void> Member::check() const {
  if (!set_) return set_.error();
  if (count_ == 0 || count_ > kMaxPartitions) {
    return bad_request("a set has 1 to " + std::to_string(kMaxPartitions) + " partitions");
  }
  if (options_.look_interval <= Millis(0)) {
    return bad_request("the look interval of a partition set is above zero");
  }
  if (options_.grace < Millis(0)) {
    return bad_request("the grace of a partition set is not negative");
  }
  return validate(set_->member(locks_.owner()));
}

Millis Member::grace() const { return options_.grace > Millis(0) ? options_.grace : options_.ttl; }

void Member::report(const Error& error) const {
  if (options_.on_error) options_.on_error(error);
}

Metadata Member::metadata() const {
  Metadata all = options_.metadata;
  all[std::string(kCountKey)] = std::to_string(count_);
  return all;
}

// Says which thread runs the member, and that none does any more.
class Member::Running {
 public:
  explicit Running(Member& member) : member_(member) {
    const std::lock_guard lock(member_.mutex_);
    member_.expected_ = false;
    first_ = member_.runner_ == std::thread::id{};
    if (first_) member_.runner_ = std::this_thread::get_id();
    member_.signal_.notify_all();
  }
  ~Running() {
    if (!first_) return;
    const std::lock_guard lock(member_.mutex_);
    member_.runner_ = {};
    member_.signal_.notify_all();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  [[nodiscard]] bool first() const { return first_; }

 private:
  Member& member_;
  bool first_ = false;
};

Result<void> Member::run(const Partitions::Work& work, const std::stop_token& stop) {
  if (auto ok = check(); !ok) {
    const Running over(*this);
    return ok;
  }
  const Running running(*this);
  if (!running.first()) return bad_request("the partition set '" + name_ + "' already runs");
  const std::stop_callback on_stop(stop, [this] { request_stop(); });
  work_ = work;
  slots_.assign(count_, Slot{});
  look_at_ = clock_.now();
  auto outcome = take_part();
  leave();
  work_ = nullptr;
  return outcome;
}

Result<void> Member::take_part() {
  while (!stopping()) {
    if (auto ok = handle_events(); !ok) return ok;
    if (look_at_ <= clock_.now()) {
      look_at_ = clock_.now() + options_.look_interval;
      if (auto ok = pass(); !ok) return ok;
    }
    pause_until(std::min(look_at_, watch_overruns()), false);
  }
  return {};
}

// The others see first that we leave, so that they wait for our partitions while we drain them.
void Member::leave() {
  if (registration_) (void)registration_.release();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    withdraw(i);
    if (const auto at_work = worker(i)) at_work->end(Ending::stopped);
  }
  const auto is_over = [this] {
    const std::lock_guard lock(mutex_);
    return unanswered_ == 0 && workers_.empty();
  };
  while (true) {
    (void)handle_events();
    if (is_over()) break;
    pause_until(watch_overruns(), true);
  }
  registration_ = Lease();
}

Result<void> Member::handle_events() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(events_);
  }
  Result<void> outcome;
  for (Event& event : events) {
    if (!event.answer) {
      worker_ended(event);
    } else if (auto ok = answered(event); !ok && outcome) {
      outcome = ok;
    }
  }
  return outcome;
}

Result<void> Member::answered(Event& event) {
  --unanswered_;
  Result<Lease>& answer = *event.answer;
  Slot& slot = slots_[event.partition];
  if (slot.request != event.request) {  // withdrawn meanwhile
    if (answer) answer->release_async();
    return {};
  }
  const Own asked_as = std::exchange(slot.own, Own::none);
  if (answer) {
    begin_work(event.partition, std::move(*answer));
    return {};
  }
  const Error& error = answer.error();
  switch (error.code) {
    case Code::busy:
    case Code::cancelled:
    case Code::timed_out: return {};
    case Code::unsupported:
      if (asked_as == Own::waiting) return {};  // no queue: what is free is taken all the same
      break;
    default: break;
  }
  if (is_permanent(error)) return error;
  tell_trouble(error);
  return {};
}

void Member::begin_work(std::size_t partition, Lease lease) {
  Slot& slot = slots_[partition];
  slot.own = Own::holding;
  slot.overrun_reported = false;
  slot.revoked = false;
  const auto at_work = std::make_shared<Worker>(name_, partition, std::move(lease), clock_);
  {
    const std::lock_guard lock(mutex_);
    workers_[partition] = at_work;
  }
  at_work->start(work_, this, can_transfer_,
                 [self = shared_from_this(), partition](std::string threw) {
                   self->post({.partition = partition, .threw = std::move(threw)});
                 });
}

void Member::worker_ended(const Event& event) {
  const auto ended = worker(event.partition);
  ended->join();
  {
    const std::lock_guard lock(mutex_);
    workers_.erase(event.partition);
  }
  slots_[event.partition].own = Own::none;
  const Ending ending = ended->ending().value_or(Ending::returned);
  if (!event.threw.empty()) {
    report({.code = Code::unavailable,
            .message = "the work on partition " + std::to_string(event.partition) + " of '" +
                       name_ + "' failed: " + event.threw,
            .retryable = true});
  }
  if (ending == Ending::lost) look_at_ = clock_.now();
  if (ending != Ending::returned && ending != Ending::failed) return;
  if (ended->began() + kMostBackoff < clock_.now()) after_failure_.reset();
  take_nothing_before_ = clock_.now() + after_failure_.next(random_());
}

// Once for each trouble, not for each look.
void Member::tell_trouble(const Error& error) {
  if (std::exchange(last_trouble_, error.message) == error.message) return;
  report(error);
}

Instant Member::watch_overruns() {
  Instant next = Instant::max();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto at_work = worker(i);
    if (at_work == nullptr || !at_work->ending()) continue;
    const Instant due = at_work->ended_at() + grace();
    Slot& slot = slots_[i];
    if (clock_.now() < due) {
      next = std::min(next, due);
      continue;
    }
    if (!std::exchange(slot.overrun_reported, true) && options_.on_overrun) {
      options_.on_overrun(
          {.set = name_,
           .partition = i,
           .token = at_work->lease().token(),
           .why_ending = at_work->why(),
           .since_stop = std::chrono::duration_cast<Millis>(clock_.now() - at_work->ended_at())});
    }
    if (slot.revoked || !at_work->lease().valid()) continue;
    // Not renewed any more from here on, and free when the work returns or the TTL is over.
    slot.revoked =
        locks_
            .break_lock(set_->partition(i), {.reason = "the work does not listen to its stop token",
                                             .only = at_work->lease().grant()})
            .has_value();
    if (!slot.revoked) next = std::min(next, clock_.now() + options_.look_interval);
  }
  return next;
}

void Member::post(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  signal_.notify_all();
}

void Member::pause_until(Instant time, bool leaving) {
  std::unique_lock lock(mutex_);
  while (events_.empty() && (leaving || !stopping()) && clock_.now() < time) {
    clock_.wait(lock, signal_, time);
  }
}

std::shared_ptr<Worker> Member::worker(std::size_t partition) const {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(partition);
  return it == workers_.end() ? nullptr : it->second;
}

void Member::expect_run() {
  const std::lock_guard lock(mutex_);
  expected_ = true;
}

void Member::expect_no_run() {
  const std::lock_guard lock(mutex_);
  expected_ = false;
  signal_.notify_all();
}

void Member::request_stop() {
  stop_.request_stop();
  const std::lock_guard lock(mutex_);
  signal_.notify_all();
}

bool Member::wait_until_over(Instant limit) {
  if (Worker::member_of_this_thread() == this) return false;
  std::unique_lock lock(mutex_);
  if (runner_ == std::this_thread::get_id()) return false;
  const auto over = [&] { return runner_ == std::thread::id{} && !expected_; };
  while (!over() && clock_.now() < limit) clock_.wait(lock, signal_, limit);
  return over();
}

std::vector<std::size_t> Member::owned() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> numbers;
  for (const auto& [number, at_work] : workers_) {
    if (!at_work->ending() && at_work->lease().valid()) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace baton::partitions
