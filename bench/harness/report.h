#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::bench {

enum class Bound { at_least, at_most };

// One measured thing and what was asked of it.
struct Figure {
  std::string row;   // what --rows selects by
  std::string what;  // in words
  std::string unit;  // of ours and floor
  double ours = 0;
  std::optional<double> floor;
  double score = 0;  // what is judged: ours as a multiple of its floor, or ours itself
  Bound bound = Bound::at_least;
  std::optional<double> target;                         // none: for information
  std::vector<std::pair<std::string, double>> details;  // shown on request

  [[nodiscard]] bool met() const {
    if (!target) return true;
    return bound == Bound::at_least ? score >= *target : score <= *target;
  }
};

using Setting = std::vector<std::pair<std::string, std::string>>;

struct Report {
  Setting setting;  // where it was measured
  std::vector<Figure> figures;

  [[nodiscard]] bool all_met() const;
};

[[nodiscard]] std::string as_table(const Report& report);
[[nodiscard]] std::string as_json(const Report& report);

}  // namespace baton::bench
