#pragma once

#include <string>
#include <vector>

#include "harness/report.h"

namespace baton::bench {

struct RowOptions {
  int runs = 20;
  int at_a_time = 5;  // each on a store of its own
  int cycles = 100;
  int seconds = 60;
  int jobs = 2000;
  int nodes = 10;
};

std::vector<Figure> shares_two_nodes(const RowOptions& options);
std::vector<Figure> shares_three_nodes(const RowOptions& options);
std::vector<Figure> shares_ten_types(const RowOptions& options);
std::vector<Figure> shares_after_a_change(const RowOptions& options);
std::vector<Figure> overhead(const RowOptions& options);
std::vector<Figure> take_over(const RowOptions& options);
std::vector<Figure> many_jobs(const RowOptions& options);

}  // namespace baton::bench
