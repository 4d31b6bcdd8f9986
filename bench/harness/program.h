#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/report.h"
#include "harness/slices.h"

namespace baton::bench {

// A program that measures rows and says whether their targets are met:
//
//   NAME [--json] [--rows REGEX] [--slices N], or its own numbers instead of --slices
struct Program {
  struct Row {
    std::string name;
    std::function<std::vector<Figure>(const SliceOptions&)> measure;
  };
  std::string name;
  std::vector<Row> rows;

  // Called before the first row; says more about where it is measured.
  std::function<Setting(const SliceOptions&)> begin;

  // Of a program that does not measure in slices: "--runs" and where its number goes, at least 1.
  std::vector<std::pair<std::string, int*>> numbers;
};

// Gives the exit code: 1 if a target is missed, 2 if something could not be measured.
[[nodiscard]] int run_program(const Program& program, const std::vector<std::string>& words);

}  // namespace baton::bench
