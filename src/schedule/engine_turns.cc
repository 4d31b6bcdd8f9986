// Whose turn it is: where this node stands among the others, and where the turns of a job begin.

#include <algorithm>

#include "schedule/engine.h"

namespace baton::schedule {
namespace {

constexpr int kStepLatencies = 4;  // how many answers of the store a step of the ranks lasts

}  // namespace

Millis Engine::rank_step() const {
  return std::max(
      {settings_.rank_step, std::chrono::ceil<Millis>(latency_ * kStepLatencies), tick_gap() * 2});
}

NodePosition Engine::position_for(const Entry& entry) const {
  const auto& canary = entry.spec.options.nodes;
  NodePosition place{.index = 0, .nodes = 0};
  bool found = false;
  for (const std::string& node : nodes_) {
    if (!canary.empty() && std::find(canary.begin(), canary.end(), node) == canary.end()) continue;
    if (node == settings_.node) {
      place.index = place.nodes;
      found = true;
    }
    ++place.nodes;
  }
  // The registry does not have us yet: those that it has go first.
  if (!found) place.index = place.nodes;
  return place;
}

// Jobs that have no offset yet get those that are free, in the order of their names: the same
// whichever node registers which of them first. Once in a job's note it stays: nodes with other
// jobs, as in the middle of a deployment, still agree on it.
void Engine::give_offsets() {
  std::set<std::int64_t> taken;
  std::vector<Entry*> without;
  for (auto& [name, entry] : jobs_) {
    const auto& note = entry->view.note;
    if (note && note->offset >= 0) {
      taken.insert(entry->offset = note->offset);
    } else {
      without.push_back(entry.get());
    }
  }
  std::sort(without.begin(), without.end(),
            [](const Entry* a, const Entry* b) { return a->spec.name < b->spec.name; });
  std::int64_t next = 0;
  for (Entry* entry : without) {
    while (taken.contains(next)) ++next;
    entry->offset = next++;
  }
  offsets_given_ = true;
}

// One that was written as we would have done leaves the others as they are.
void Engine::heed_offset(const Entry& entry) {
  const auto& note = entry.view.note;
  if (note && note->offset >= 0 && note->offset != entry.offset) offsets_given_ = false;
}

}  // namespace baton::schedule
