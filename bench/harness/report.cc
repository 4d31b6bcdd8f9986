#include "harness/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace baton::bench {
namespace {

using Cells = std::array<std::string, 8>;

std::string with_digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// Three significant digits, whole numbers above a hundred.
std::string number(double value) {
  if (std::abs(value - std::round(value)) < 1e-9) return with_digits(value, 0);
  const double size = std::abs(value);
  return with_digits(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

std::string target_of(const Figure& figure) {
  const char* sign = figure.bound == Bound::at_least ? ">= " : "<= ";
  return sign + number(figure.target) + (figure.floor ? "x" : "");
}

Cells cells_of(const Figure& figure) {
  return {figure.row,          figure.what,
          number(figure.ours), figure.floor ? number(*figure.floor) : "",
          figure.unit,         figure.floor ? number(figure.score) + "x" : "",
          target_of(figure),   figure.met() ? "met" : "MISSED"};
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::string gap(width - std::min(width, text.size()), ' ');
  return to_the_right ? gap + text : text + gap;
}

}  // namespace

bool Report::all_met() const {
  return std::all_of(figures.begin(), figures.end(), [](const Figure& f) { return f.met(); });
}

std::string as_table(const Report& report) {
  std::vector<Cells> lines{{"row", "what", "ours", "floor", "unit", "ratio", "target", ""}};
  for (const Figure& figure : report.figures) lines.push_back(cells_of(figure));
  std::array<std::size_t, 8> widths{};
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const auto& [name, value] : report.setting) table += name + ": " + value + "\n";
  table += "\n";
  for (const Cells& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool is_number = i == 2 || i == 3 || i == 5;
      text += padded(line[i], widths[i], is_number) + "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + "\n";
  }
  return table;
}

std::string as_json(const Report& report) {
  nlohmann::ordered_json document;
  for (const auto& [name, value] : report.setting) document["setting"][name] = value;
  document["figures"] = nlohmann::ordered_json::array();
  for (const Figure& figure : report.figures) {
    nlohmann::ordered_json entry{{"row", figure.row},     {"what", figure.what},
                                 {"unit", figure.unit},   {"ours", figure.ours},
                                 {"score", figure.score}, {"target", figure.target}};
    if (figure.floor) entry["floor"] = *figure.floor;
    entry["bound"] = figure.bound == Bound::at_least ? "at_least" : "at_most";
    entry["met"] = figure.met();
    for (const auto& [name, value] : figure.details) entry["details"][name] = value;
    document["figures"].push_back(std::move(entry));
  }
  document["all_met"] = report.all_met();
  return document.dump(2) + "\n";
}

}  // namespace baton::bench
