#include "apps/warehouse/observer_log.h"

#include <array>
#include <string_view>

namespace baton::warehouse {
namespace {

struct Phrase {
  std::string_view scheduler;
  std::string_view observer;
};

constexpr std::array kBeginnings = {
    Phrase{"Cycle started: observer", "Starting scheduled polling cycle for all observer types"},
    Phrase{"Cycle completed: observer", "Polling cycle completed for all observer types"},
    Phrase{"Job completed: ", "Completed polling for: "},
    Phrase{"Job failed: ", "Error during polling for: "},
    Phrase{"Still running after ", "Still polling after "}};
constexpr Phrase kElsewhere{"(another node runs it)", "(another node is polling)"};

}  // namespace

std::string observer_message(const std::string& message) {
  for (const Phrase& phrase : kBeginnings) {
    if (!message.starts_with(phrase.scheduler)) continue;
    return std::string(phrase.observer) + message.substr(phrase.scheduler.size());
  }
  if (!message.ends_with(kElsewhere.scheduler)) return message;
  return message.substr(0, message.size() - kElsewhere.scheduler.size()) +
         std::string(kElsewhere.observer);
}

}  // namespace baton::warehouse
