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
  double target = 0;
  std::vector<std::pair<std::string, double>> details;  // for whoever looks closer

  [[nodiscard]] bool met() const {
    return bound == Bound::at_least ? score >= target : score <= target;
  }
};

struct Report {
  std::vector<std::pair<std::string, std::string>> setting;  // where it was measured
  std::vector<Figure> figures;

  [[nodiscard]] bool all_met() const;
};

[[nodiscard]] std::string as_table(const Report& report);
[[nodiscard]] std::string as_json(const Report& report);

}  // namespace baton::bench
