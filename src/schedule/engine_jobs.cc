// Which jobs there are: they come, change and go while others run.

#include "schedule/engine.h"

namespace baton::schedule {

bool Engine::add(JobSpec job, const Moment& moment) {
  const std::string name = job.name;
  auto [it, added] = jobs_.try_emplace(name, nullptr);
  if (!added) return false;
  it->second = std::make_unique<Entry>(std::move(job));
  offsets_given_ = false;
  wake_at(*it->second, moment.now);
  return true;
}

void Engine::add_or_replace(JobSpec job, const Moment& moment) {
  const auto it = jobs_.find(job.name);
  if (it == jobs_.end()) {
    add(std::move(job), moment);
    return;
  }
  Entry& entry = *it->second;
  // An open fire is counted in the group that it was counted into.
  close_due(entry, DueEnd::neither, moment);
  entry.spec.schedule = std::move(job.schedule);
  entry.spec.options = std::move(job.options);
  entry.removed = false;
  if (entry.state == State::running || entry.state == State::ending) mark_due(entry, moment);
  if (entry.state == State::idle) {
    entry.hold_off = {};
    wake_at(entry, moment.now);
  }
}

void Engine::remove(const std::string& job, const Moment& moment) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->removed = true;
  if (it->second->state == State::idle) gone(*it->second, moment);
}

void Engine::withdrawn(const std::string& job, const Moment& moment) {
  Entry& entry = *jobs_.at(job);
  end_attempt(entry);
  entry.removed = true;
  gone(entry, moment);
}

// Whether the job was removed; then its entry is not there any more.
bool Engine::gone(Entry& entry, const Moment& moment) {
  if (!entry.removed) return false;
  close_due(entry, DueEnd::neither, moment);
  erase(entry);
  return true;
}

void Engine::erase(Entry& entry) {
  wake_at(entry, Instant::max());
  wanting_.erase(entry.spec.name);
  offsets_given_ = false;
  const std::string name = entry.spec.name;
  jobs_.erase(name);
}

}  // namespace baton::schedule
