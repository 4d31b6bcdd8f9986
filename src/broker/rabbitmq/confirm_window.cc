#include "broker/rabbitmq/confirm_window.h"

#include <functional>

namespace baton::broker::rabbitmq {

std::uint64_t fingerprint(std::string_view exchange, std::string_view routing_key,
                          std::string_view id) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  std::uint64_t print = 0;
  for (const std::string_view part : {exchange, routing_key, id}) {
    print = (print ^ std::hash<std::string_view>()(part)) * kOdd;
    print ^= print >> 29U;
  }
  return print;
}

void ConfirmWindow::returned(std::uint64_t print, std::string why) {
  for (Entry& entry : entries_) {
    if (entry.resolved || entry.returned || entry.print != print) continue;
    entry.returned = true;
    returned_.emplace(entry.tag, std::move(why));
    return;
  }
}

void ConfirmWindow::resolve(Entry& entry, bool taken, std::vector<Confirm>& confirms) {
  if (entry.resolved) return;
  entry.resolved = true;
  Confirm& confirm = confirms.emplace_back(Confirm{.tag = entry.tag});
  if (entry.returned) {
    confirm.outcome = PublishOutcome::returned;
    confirm.why = std::move(returned_.extract(entry.tag).mapped());
  } else if (!taken) {
    confirm.outcome = PublishOutcome::refused;
    confirm.why = "the broker refused it: a queue is full, or has lost the majority of its nodes";
  }
}

bool ConfirmWindow::resolve(std::uint64_t number, bool multiple, bool taken,
                            std::vector<Confirm>& confirms) {
  if (number == 0 && multiple) number = first_ + entries_.size() - 1;  // all
  if (number >= first_ + entries_.size()) return false;
  if (number < first_) return true;  // confirmed before, as part of several
  const std::size_t last = number - first_;
  for (std::size_t i = multiple ? 0 : last; i <= last; ++i) resolve(entries_[i], taken, confirms);
  while (!entries_.empty() && entries_.front().resolved) {
    entries_.pop_front();
    ++first_;
  }
  return true;
}

void ConfirmWindow::abandon(const std::string& why, std::vector<Confirm>& confirms) {
  for (const Entry& entry : entries_) {
    if (!entry.resolved) confirms.push_back({entry.tag, PublishOutcome::unknown, why});
  }
  entries_.clear();
  returned_.clear();
  first_ = 1;
}

}  // namespace baton::broker::rabbitmq
