#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "apps/warehouse/config.h"

namespace baton::warehouse {

struct NodeFigures {
  std::int64_t polls = 0;
  std::int64_t events = 0;
};

struct TypeFigures {
  std::int64_t rows = 0;     // in the source
  std::int64_t events = 0;   // in the outbox
  std::int64_t missing = 0;  // rows without an event
  std::int64_t doubled = 0;  // rows with more than one
  std::int64_t unknown = 0;  // rows that are not there, with an event
  std::int64_t polls = 0;
  std::int64_t failed_polls = 0;
  std::int64_t unfinished_polls = 0;  // they run, or their node has died
  std::int64_t source_queries = 0;
  std::map<std::string, NodeFigures> nodes;

  [[nodiscard]] bool exact() const { return missing == 0 && doubled == 0 && unknown == 0; }
};

using Verdict = std::map<std::string, TypeFigures>;  // by type

// Compares every row of the sources with the outbox. Keeps all ids of a type in memory.
[[nodiscard]] Result<Verdict> verify(const Config& config, const std::string& data);

[[nodiscard]] bool exact(const Verdict& verdict);
[[nodiscard]] bool hopeless(const Verdict& verdict);  // no waiting will mend it
[[nodiscard]] std::string to_text(const Verdict& verdict);
[[nodiscard]] std::string to_json(const Verdict& verdict);

}  // namespace baton::warehouse
