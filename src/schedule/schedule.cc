#include "baton/schedule.h"

#include <algorithm>

#include "core/bad_request.h"
#include "policy/duration.h"
#include "schedule/cron.h"
#include "schedule/hash.h"

namespace baton {
namespace {

constexpr Millis kLongest = std::chrono::hours(24 * 366);

Result<void> check_interval(Millis interval, std::string_view what) {
  if (interval <= Millis(0) || interval > kLongest) {
    return bad_request("a " + std::string(what) + " is above zero and at most a year, not " +
                       std::to_string(interval.count()) + " ms");
  }
  return {};
}

}  // namespace

struct Schedule::Rule {
  Kind kind = Kind::fixed_delay;
  Millis interval{0};
  std::optional<Millis> phase;
  std::optional<schedule::Cron> cron;

  [[nodiscard]] Millis phase_for(std::string_view job) const {
    if (phase) return *phase % interval;
    const auto hash = schedule::stable_hash(job) % static_cast<std::uint64_t>(interval.count());
    return Millis(static_cast<std::int64_t>(hash));
  }
};

Schedule::Schedule(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}

Result<Schedule> Schedule::fixed_delay(Millis delay) {
  if (auto ok = check_interval(delay, "delay"); !ok) return ok.error();
  return Schedule(std::make_shared<const Rule>(Rule{.kind = Kind::fixed_delay, .interval = delay}));
}

Result<Schedule> Schedule::fixed_rate(Millis period, std::optional<Millis> phase) {
  if (auto ok = check_interval(period, "period"); !ok) return ok.error();
  if (phase && *phase < Millis(0)) return bad_request("a phase is not negative");
  return Schedule(std::make_shared<const Rule>(
      Rule{.kind = Kind::fixed_rate, .interval = period, .phase = phase}));
}

Result<Schedule> Schedule::cron(std::string_view expression, std::string_view time_zone) {
  auto zone = schedule::TimeZone::load(time_zone);
  if (!zone) return zone.error();
  auto cron = schedule::Cron::parse(expression, *zone);
  if (!cron) return cron.error();
  return Schedule(std::make_shared<const Rule>(Rule{.kind = Kind::cron, .cron = std::move(*cron)}));
}

Schedule::Kind Schedule::kind() const { return rule_->kind; }
Millis Schedule::interval() const { return rule_->interval; }

WallTime Schedule::next(WallTime after, std::string_view job) const {
  switch (rule_->kind) {
    case Kind::fixed_delay: return after + rule_->interval;
    case Kind::cron: return rule_->cron->next(std::chrono::floor<std::chrono::seconds>(after));
    case Kind::fixed_rate: break;
  }
  const Millis period = rule_->interval;
  const Millis phase = rule_->phase_for(job);
  const Millis since = std::chrono::floor<Millis>(after.time_since_epoch()) - phase;
  const auto rounds = since.count() / period.count() - (since.count() < 0 ? 1 : 0);
  WallTime next(period * rounds + phase);
  while (next <= after) next += period;
  return next;
}

WallTime Schedule::latest(WallTime after, WallTime until, std::string_view job) const {
  WallTime best = after;
  if (rule_->kind == Kind::fixed_rate) {
    const WallTime last = next(until, job) - rule_->interval;
    return last > after ? last : after;
  }
  if (rule_->kind == Kind::fixed_delay) {
    const WallTime due = next(after, job);
    return due <= until ? due : after;
  }
  // Not from `after` on: a long absence of a job of every minute would be a million steps.
  WallTime from = after;
  for (const int hours_back : {1, 25, 32 * 24, 366 * 24}) {
    from = std::max(after, until - std::chrono::hours(hours_back));
    if (next(from, job) <= until) break;
  }
  for (WallTime at = next(from, job); at <= until; at = next(at, job)) best = at;
  return best;
}

std::string Schedule::text() const {
  switch (rule_->kind) {
    case Kind::fixed_delay: return policy::print_duration(rule_->interval) + " after the end";
    case Kind::fixed_rate: return "every " + policy::print_duration(rule_->interval);
    case Kind::cron: break;
  }
  return rule_->cron->expression() + " " + rule_->cron->zone().name();
}

}  // namespace baton
