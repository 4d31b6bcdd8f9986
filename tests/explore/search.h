#pragma once

// Breadth first through all states of a World, a class with
//   State start();  std::vector<Step> steps(State);  bool is_end(State);
//   std::string wrong_now(State);  std::string key(State);  std::string print(State);
// then backwards from the states in which all is done: from every state there is a way to one.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

template <typename State>
struct WorldStep {
  std::string what;
  State next;
  std::string wrong;  // the promise that it breaks
};

template <typename World>
class Search {
 public:
  // `stuck`: what is wrong with a state from which there is no way to an end.
  Search(World world, std::string title, std::string stuck)
      : world_(std::move(world)), stuck_(std::move(stuck)) {
    report_.title = std::move(title);
  }

  Report run() {
    const auto began = std::chrono::steady_clock::now();
    add(world_.start(), 0, "");
    for (std::uint32_t at = 0; at < known_.size() && report_.problem.empty(); ++at) expand(at);
    if (report_.problem.empty()) find_stuck();
    report_.states = known_.size();
    report_.complete = report_.problem.empty();
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report_;
  }

 private:
  using State = decltype(std::declval<const World&>().start());

  struct Known {
    std::unique_ptr<State> state;  // until it is expanded
    std::uint32_t from = 0;
    std::uint32_t depth = 0;
    std::string what;
    std::vector<std::uint32_t> before;
    bool end = false;
  };

  std::uint32_t add(const State& state, std::uint32_t from, const std::string& what) {
    const auto [it, is_new] =
        index_.emplace(world_.key(state), static_cast<std::uint32_t>(known_.size()));
    if (!is_new) return it->second;
    const std::uint32_t depth = known_.empty() ? 0 : known_[from].depth + 1;
    known_.push_back({std::make_unique<State>(state), from, depth, what, {}, world_.is_end(state)});
    report_.depth = std::max<std::size_t>(report_.depth, depth);
    if (const auto wrong = world_.wrong_now(state); !wrong.empty()) fail(wrong, it->second);
    return it->second;
  }

  void expand(std::uint32_t at) {
    const auto state = std::move(known_[at].state);
    for (const auto& step : world_.steps(*state)) {
      ++report_.transitions;
      const auto next = add(step.next, at, step.what);
      if (next != at) known_[next].before.push_back(at);
      if (!step.wrong.empty()) return fail(step.wrong, at, step.what);
    }
  }

  void find_stuck() {
    std::vector<char> good(known_.size(), 0);
    std::vector<std::uint32_t> todo;
    for (std::uint32_t i = 0; i < known_.size(); ++i) {
      if (known_[i].end) {
        good[i] = 1;
        todo.push_back(i);
      }
    }
    while (!todo.empty()) {
      const auto at = todo.back();
      todo.pop_back();
      for (const auto before : known_[at].before) {
        if (good[before] == 0) {
          good[before] = 1;
          todo.push_back(before);
        }
      }
    }
    const auto stuck = std::find(good.begin(), good.end(), 0);
    if (stuck != good.end()) {
      fail(stuck_, static_cast<std::uint32_t>(stuck - good.begin()));
    }
  }

  void fail(const std::string& problem, std::uint32_t at, const std::string& last = "") {
    if (!report_.problem.empty()) return;
    report_.problem = problem;
    report_.depth = known_[at].depth;
    std::vector<std::string> way;
    if (!last.empty()) way.push_back(last);
    for (auto step = at; step != 0; step = known_[step].from) way.push_back(known_[step].what);
    std::reverse(way.begin(), way.end());
    State state = world_.start();
    report_.trace = "  " + world_.print(state) + "\n";
    for (const auto& what : way) {
      for (auto& step : world_.steps(state)) {
        if (step.what != what) continue;
        state = std::move(step.next);
        break;
      }
      report_.trace += "  " + what + "\n      " + world_.print(state) + "\n";
    }
  }

  const World world_;
  const std::string stuck_;
  Report report_;
  std::unordered_map<std::string, std::uint32_t> index_;
  std::deque<Known> known_;
};

}  // namespace baton::explore
