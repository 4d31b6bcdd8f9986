// The events that the engine tells its listeners: skipped fires, cycles, handlers that do not
// return.

#include <algorithm>

#include "node/wall_time.h"
#include "schedule/engine.h"

namespace baton::schedule {

void Engine::look_for_stuck(Entry& entry, const Moment& moment) {
  const JobOptions& options = entry.spec.options;
  const Millis limit = options.report_after > Millis(0) ? options.report_after : options.lock_ttl;
  if (entry.stuck) return;
  if (moment.now < entry.run_began + limit) return wake_at(entry, entry.run_began + limit);
  entry.stuck = true;
  ++stuck_;
  const Millis running = std::chrono::floor<Millis>(moment.now - entry.run_began);
  events_.emplace_back([fire = entry.fire, running](SchedulerListener& listener) {
    listener.on_stuck(fire, running);
  });
  log(LogLevel::error, entry.spec.name,
      "Still running after " + std::to_string(running.count()) + " ms: " + entry.spec.name +
          " (fire " + std::to_string(entry.fire.number) + "); its lock is kept, other jobs go on");
}

Fire Engine::fire_of(const Entry& entry, const JobNote& note) const {
  return {.job = entry.spec.name,
          .group = entry.spec.options.group.empty() ? "jobs" : entry.spec.options.group,
          .number = note.fire,
          .due = node::from_millis(note.due),
          .attempt = std::max(1, note.attempt),
          .manual = note.manual,
          .node = settings_.node};
}

void Engine::note_skipped(Entry& entry, const JobNote& note, const Moment& moment) {
  const bool asked_for =
      note.last && note.last->fire == note.fire && note.last->result == "skipped";
  if (note.node != settings_.node) {
    const auto reason = asked_for ? SkipReason::skipped : SkipReason::other_node;
    events_.emplace_back([fire = fire_of(entry, note), reason](SchedulerListener& listener) {
      listener.on_skipped(fire, reason);
    });
    log(LogLevel::debug, entry.spec.name,
        "Lock not acquired for: " + entry.spec.name +
            (asked_for ? " (skipped as asked)" : " (another node runs it)"));
  }
  close_due(entry, DueEnd::skipped, moment);
}

void Engine::tell_given_up(Entry& entry, const JobNote& note) {
  events_.emplace_back([fire = fire_of(entry, note)](SchedulerListener& listener) {
    listener.on_skipped(fire, SkipReason::given_up);
  });
  log(LogLevel::error, entry.spec.name,
      "Crashed too often: " + entry.spec.name + " (fire " + std::to_string(note.fire) + " is " +
          note.last->detail + ", the last on " + note.last->node + ")");
}

// By something that is no fire.
bool Engine::is_taken(const Entry& entry) {
  const JobView& view = entry.view;
  return view.held && !view.parked && view.note && !view.note->started;
}

void Engine::tell_waiting(Entry& entry, const Moment& moment) {
  if (entry.told || !is_taken(entry)) return;
  if (moment.now - entry.due_since < entry.spec.options.try_for) return;
  entry.told = true;
  events_.emplace_back([fire = fire_of(entry, *entry.view.note)](SchedulerListener& listener) {
    listener.on_skipped(fire, SkipReason::busy);
  });
  log(LogLevel::debug, entry.spec.name,
      "Lock not acquired for: " + entry.spec.name + " (it is held by something else)");
}

void Engine::mark_due(Entry& entry, const Moment& moment) {
  if (std::exchange(entry.due, true)) return;
  entry.due_since = moment.now;
  entry.told = false;
  const std::string& name = entry.spec.options.group;
  Group& group = groups_[name];
  if (group.open++ != 0) return;
  group.began = moment.now;
  group.cycle = Cycle{.group = name.empty() ? "jobs" : name};
  if (!name.empty()) {
    log(LogLevel::info, "", "Cycle started: " + name);
  }
}

void Engine::close_due(Entry& entry, DueEnd how, const Moment& moment) {
  if (!std::exchange(entry.due, false)) return;
  const std::string& name = entry.spec.options.group;
  Group& group = groups_[name];
  if (how == DueEnd::locked) ++group.cycle.locked;
  if (how == DueEnd::skipped) ++group.cycle.skipped;
  if (--group.open != 0) return;
  group.cycle.duration = moment.now - group.began;
  events_.emplace_back(
      [cycle = group.cycle](SchedulerListener& listener) { listener.on_cycle(cycle); });
  if (!name.empty()) {
    log(LogLevel::info, "", "Cycle completed: " + name);
  }
}

void Engine::log(LogLevel level, const std::string& job, std::string message) {
  events_.emplace_back([level, job, message = std::move(message)](SchedulerListener& listener) {
    listener.on_log(level, job, message);
  });
}

}  // namespace baton::schedule
