#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "apps/warehouse/config.h"

namespace baton::warehouse {

struct NodeFigures {
  std::int64_t polls = 0;
  std::int64_t failed = 0;
  std::int64_t queries = 0;
  std::int64_t events = 0;
};

// What should be there exactly once.
struct StepFigures {
  std::int64_t all = 0;
  std::int64_t missing = 0;
  std::int64_t doubled = 0;
  std::int64_t unknown = 0;  // without the step before

  [[nodiscard]] bool exact() const { return missing == 0 && doubled == 0 && unknown == 0; }
};

struct TypeFigures {
  std::int64_t rows = 0;  // in the source
  StepFigures events;     // in the outbox, of the rows
  StepFigures effects;    // at the subscriber, of the events
  std::int64_t polls = 0;
  std::int64_t failed_polls = 0;
  std::int64_t unfinished_polls = 0;  // they run, or their node has died
  std::int64_t source_queries = 0;
  std::map<std::string, NodeFigures> nodes;

  [[nodiscard]] bool exact() const { return events.exact() && effects.exact(); }
};

using Verdict = std::map<std::string, TypeFigures>;  // by type

// Compares every row of the sources with the outbox, and that with the effects. Keeps all ids of a
// type in memory.
[[nodiscard]] Result<Verdict> verify(const Config& config, const std::string& data,
                                     const std::string& effects);

[[nodiscard]] bool exact(const Verdict& verdict);
[[nodiscard]] bool hopeless(const Verdict& verdict);  // no waiting will mend it
[[nodiscard]] std::string to_text(const Verdict& verdict);
[[nodiscard]] std::string to_json(const Verdict& verdict);

}  // namespace baton::warehouse
