#pragma once

// A type of observer: what it reads from the source and what it publishes. Each type is one file in
// types/ that makes a Registered; docs/warehouse.md shows how to add one.

#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"

namespace baton::warehouse {

struct ObserverType {
  std::string name;                  // its job and lock are {name}-observer-poll
  std::string event;                 // what it publishes for each row
  std::string table;                 // of the source; with id, channel and changed_at, besides:
  std::vector<std::string> columns;  // that go into the event

  [[nodiscard]] std::string job() const { return name + "-observer-poll"; }
};

// All that are part of this program, by name.
[[nodiscard]] const std::vector<ObserverType>& observer_types();
[[nodiscard]] Result<const ObserverType*> observer_type(std::string_view name);

// The type of a job; empty if it is no observer's.
[[nodiscard]] std::string_view type_of_job(std::string_view job);

// Throws std::invalid_argument if a name is no plain word: they become part of SQL statements.
class Registered {
 public:
  explicit Registered(ObserverType type);
};

}  // namespace baton::warehouse
