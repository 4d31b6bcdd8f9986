#include "explore/partitions_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

#include "partitions/plan.h"

namespace baton::explore {
namespace {

using partitions::Own;

constexpr int kMostPartitions = 5;
constexpr int kMostNodes = 4;
constexpr std::int8_t kNobody = -1;
constexpr int kMostMoves = 8;  // more than any world allows; not counted further

enum class Request : std::uint8_t { none, take, wait };  // on its way to the store

// All bytes, so that states are compared and hashed as text.
struct Lane {
  std::int8_t holder = kNobody;
  std::int8_t age = 0;  // order of the grants: the latest has the highest
  std::int8_t last = kNobody;
  std::int8_t to = kNobody;    // of a hand-over under way
  std::uint8_t seen_free = 0;  // the members that have acted since it is free
  std::array<std::int8_t, kMostNodes> queue{kNobody, kNobody, kNobody, kNobody};
  std::array<Own, kMostNodes> own{};
  std::array<Request, kMostNodes> request{};
};

struct State {
  std::array<Lane, kMostPartitions> lanes{};
  std::array<std::uint8_t, kMostNodes> view{};  // the members that a node has seen, as bits
  std::uint8_t alive = 0;
  std::uint8_t leaving = 0;
  std::uint8_t members = 0;
  std::int8_t joins = 0;
  std::int8_t leaves = 0;
  std::int8_t crashes = 0;
  std::int8_t lost_registrations = 0;
  std::int8_t moves = 0;
  std::uint8_t gone = 0;  // nodes that left or crashed
};
static_assert(std::has_unique_object_representations_v<State>);

const std::string& name_of(int node) {
  static const std::array<std::string, kMostNodes> names{"a", "b", "c", "d"};
  return names[static_cast<std::size_t>(node)];
}
std::uint8_t bit(int node) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(node)); }
bool has(std::uint8_t set, int node) { return (set & bit(node)) != 0; }

struct Step {
  std::string what;
  State next;
};

class World {
 public:
  explicit World(const PartitionSetting& setting) : setting_(setting) {}

  State start() const {
    State state;
    state.joins = static_cast<std::int8_t>(setting_.joins);
    state.leaves = static_cast<std::int8_t>(setting_.leaves);
    state.crashes = static_cast<std::int8_t>(setting_.crashes);
    state.lost_registrations = static_cast<std::int8_t>(setting_.lost_registrations);
    std::vector<int> able;
    for (const char member : setting_.members) {
      state.alive |= bit(member - 'a');
      if (!is_mute(member - 'a')) able.push_back(member - 'a');
    }
    state.members = state.alive;
    for (int node = 0; node < setting_.nodes; ++node) {
      if (has(state.alive, node)) state.view[node] = state.members;
    }
    for (int i = 0; i < setting_.count; ++i) {
      Lane& lane = state.lanes[i];
      lane.holder = lane.last = static_cast<std::int8_t>(able[i % able.size()]);
      lane.own[lane.holder] = Own::holding;
      lane.age = static_cast<std::int8_t>(i + 1);
    }
    return state;
  }

  std::vector<Step> steps(const State& state) const {
    std::vector<Step> all;
    const auto add = [&](std::string what, const State& next) {
      if (std::memcmp(&next, &state, sizeof next) != 0) all.push_back({std::move(what), next});
    };
    for (int node = 0; node < setting_.nodes; ++node) {
      if (!has(state.alive, node)) {
        add_dead(state, node, add);
        continue;
      }
      add_changes(state, node, add);
      if (!is_mute(node)) add_actions(state, node, add);
    }
    return all;
  }

  static bool is_calm(const State& state) {
    return state.joins + state.leaves + state.crashes + state.lost_registrations == 0;
  }

  // Broken in any state.
  std::string wrong_now(const State& state) const {
    const auto before = static_cast<int>(setting_.members.size());
    const int changes =
        setting_.joins + setting_.leaves + setting_.crashes + setting_.lost_registrations;
    if (changes != 1 || !setting_.mute.empty()) return {};
    if (setting_.joins == 1 && state.moves > setting_.count / before + 1) {
      return "a join moves more than count / n + 1 partitions";
    }
    if (setting_.lost_registrations == 1 && state.moves > setting_.count / before + 1) {
      return "a lost registration moves more than one share";
    }
    const State first = start();
    for (int i = 0; i < setting_.count && setting_.leaves + setting_.crashes == 1; ++i) {
      const int had_it = first.lanes[i].holder;
      if (state.lanes[i].last != had_it && !has(state.gone, had_it)) {
        return "a leave moves a partition of another member";
      }
    }
    return {};
  }

  // Broken in a state that nothing leads out of.
  std::string wrong_at_rest(const State& state) const {
    const int members = __builtin_popcount(state.members);
    bool able = false;
    for (int node = 0; node < setting_.nodes; ++node) {
      able = able || (has(state.members, node) && !is_mute(node));
    }
    if (!able) return {};
    std::array<std::size_t, kMostNodes> held{};
    for (int i = 0; i < setting_.count; ++i) {
      if (state.lanes[i].holder == kNobody) return "a partition stays free for ever";
      ++held[state.lanes[i].holder];
    }
    if (!setting_.mute.empty()) return {};
    std::size_t rank = 0;
    for (int node = 0; node < setting_.nodes; ++node) {
      if (!has(state.members, node)) continue;
      const auto all = static_cast<std::size_t>(setting_.count);
      const auto due = all / members + (rank < all % members ? 1 : 0);
      if (held[node] != due) return "a member stays off its quota for ever";
      ++rank;
    }
    return {};
  }

  std::string print(const State& state) const {
    std::string text = "members";
    for (int node = 0; node < setting_.nodes; ++node) {
      if (has(state.members, node)) text += " " + name_of(node);
    }
    for (int i = 0; i < setting_.count; ++i) {
      const Lane& lane = state.lanes[i];
      text += "; " + std::to_string(i) + ": " +
              (lane.holder == kNobody ? std::string("free") : name_of(lane.holder));
      for (const auto waiter : lane.queue) {
        if (waiter != kNobody) text += " <" + name_of(waiter);
      }
    }
    return text;
  }

 private:
  using Add = std::function<void(std::string, const State&)>;

  bool is_mute(int node) const {
    return setting_.mute.find(static_cast<char>('a' + node)) != std::string::npos;
  }

  void grant(State& state, int i, int node) const {
    Lane& lane = state.lanes[i];
    lane.holder = static_cast<std::int8_t>(node);
    lane.seen_free = 0;
    if (lane.last != node && state.moves < kMostMoves) ++state.moves;
    lane.last = lane.holder;
    // Only the order counts: it becomes the latest, and those that were later move up.
    for (Lane& other : state.lanes) {
      if (other.age > lane.age) --other.age;
    }
    lane.age = static_cast<std::int8_t>(setting_.count);
  }

  static void drop(Lane& lane, int node) {
    const auto end = std::remove(lane.queue.begin(), lane.queue.end(), node);
    std::fill(end, lane.queue.end(), kNobody);
  }

  // To `to` if it waits, else to the first of the queue.
  void release(State& state, int i, int to) const {
    Lane& lane = state.lanes[i];
    const bool waits =
        to != kNobody && std::find(lane.queue.begin(), lane.queue.end(), to) != lane.queue.end();
    const int next = waits ? to : lane.queue[0];
    lane.holder = kNobody;
    lane.to = kNobody;
    if (next == kNobody) return;
    drop(lane, next);
    grant(state, i, next);
  }

  void add_dead(const State& state, int node, const Add& add) const {
    if (state.joins > 0 && !has(state.gone, node)) {
      State next = state;
      --next.joins;
      next.alive |= bit(node);
      add(name_of(node) + " starts", next);
    }
    if (has(state.members, node)) {
      State next = state;
      next.members &= static_cast<std::uint8_t>(~bit(node));
      add("the registration of " + name_of(node) + " runs out", next);
    }
    for (int i = 0; i < setting_.count; ++i) {
      State next = state;
      if (state.lanes[i].holder == node) {
        release(next, i, kNobody);
        add("the lock " + std::to_string(i) + " of " + name_of(node) + " runs out", next);
      } else {
        drop(next.lanes[i], node);
        add(name_of(node) + " falls out of the queue of " + std::to_string(i), next);
      }
    }
  }

  void forget(State& state, int node) const {
    for (Lane& lane : state.lanes) {
      lane.own[node] = Own::none;
      lane.request[node] = Request::none;
      if (lane.holder == node) lane.to = kNobody;
    }
    state.view[node] = 0;
  }

  void add_changes(const State& state, int node, const Add& add) const {
    if (state.crashes > 0) {
      State next = state;
      --next.crashes;
      next.alive &= static_cast<std::uint8_t>(~bit(node));
      next.leaving &= static_cast<std::uint8_t>(~bit(node));
      next.gone |= bit(node);
      forget(next, node);
      add(name_of(node) + " crashes", next);
    }
    if (state.leaves > 0 && !has(state.leaving, node) && !is_mute(node)) {
      State next = state;
      --next.leaves;
      next.leaving |= bit(node);
      next.gone |= bit(node);
      next.members &= static_cast<std::uint8_t>(~bit(node));
      for (int i = 0; i < setting_.count; ++i) {
        Lane& lane = next.lanes[i];
        withdraw(next, i, node);
        lane.request[node] = Request::none;
        if (lane.own[node] == Own::holding) lane.own[node] = Own::draining;
        if (lane.own[node] != Own::draining) lane.own[node] = Own::none;
      }
      add(name_of(node) + " leaves", next);
    }
    if (state.lost_registrations > 0 && has(state.members, node)) {
      State next = state;
      --next.lost_registrations;
      next.members &= static_cast<std::uint8_t>(~bit(node));
      add(name_of(node) + " loses its registration", next);
    }
  }

  // A wait ends; what was granted meanwhile is given back.
  void withdraw(State& state, int i, int node) const {
    Lane& lane = state.lanes[i];
    if (lane.own[node] != Own::waiting) return;
    drop(lane, node);
    if (lane.holder == node) release(state, i, kNobody);
    lane.own[node] = Own::none;
    lane.request[node] = Request::none;
  }

  void add_actions(const State& state, int node, const Add& add) const {
    add_answers(state, node, add);
    if (has(state.leaving, node)) {
      const bool drained = std::none_of(state.lanes.begin(), state.lanes.end(), [&](const Lane& l) {
        return l.holder == node || l.own[node] != Own::none;
      });
      if (!drained) return;
      State next = state;
      next.alive &= static_cast<std::uint8_t>(~bit(node));
      next.leaving &= static_cast<std::uint8_t>(~bit(node));
      next.view[node] = 0;
      add(name_of(node) + " has gone", next);
      return;
    }
    State next = state;
    if (!has(state.members, node)) {
      next.members |= bit(node);
      next.view[node] = next.members;
      add(name_of(node) + " registers", next);
      return;
    }
    next.view[node] = state.members;
    add(name_of(node) + " looks", next);
    add(name_of(node) + " acts", act(state, node));
  }

  // Members look at least as often as a partition becomes free for anyone, and a request takes less
  // time than that.
  Millis free_for(const State& state, const Lane& lane) const {
    for (int node = 0; node < setting_.nodes; ++node) {
      const bool acts = has(state.members & state.alive, node) && !is_mute(node);
      if (acts && !has(lane.seen_free, node)) return Millis(0);
      if (lane.request[node] != Request::none) return Millis(0);
    }
    return partitions::kFreeForAnyone;
  }

  void add_answers(const State& state, int node, const Add& add) const {
    for (int i = 0; i < setting_.count; ++i) {
      const std::string partition = " " + std::to_string(i);
      State next = state;
      Lane& lane = next.lanes[i];
      if (lane.request[node] != Request::none) {
        const bool waits = lane.request[node] == Request::wait;
        lane.request[node] = Request::none;
        if (lane.holder == kNobody) {
          grant(next, i, node);
          lane.own[node] = Own::holding;
        } else if (waits) {
          *std::find(lane.queue.begin(), lane.queue.end(), kNobody) =
              static_cast<std::int8_t>(node);
        } else {
          lane.own[node] = Own::none;
        }
        add("the request of " + name_of(node) + " for" + partition + " arrives", next);
      } else if (lane.own[node] == Own::waiting && lane.holder == node) {
        lane.own[node] = Own::holding;
        add(name_of(node) + " learns that it has" + partition, next);
      } else if (lane.own[node] == Own::draining) {
        lane.own[node] = Own::none;
        if (lane.holder == node) release(next, i, lane.to);
        add(name_of(node) + " has drained" + partition, next);
      }
    }
  }

  State act(const State& state, int node) const {
    partitions::View view{.self = name_of(node)};
    for (int other = 0; other < setting_.nodes; ++other) {
      if (has(state.view[node], other)) view.members.push_back(name_of(other));
    }
    for (int i = 0; i < setting_.count; ++i) {
      const Lane& lane = state.lanes[i];
      partitions::Seen seen{.token = static_cast<Token>(lane.age),
                            .free_for = free_for(state, lane),
                            .own = lane.own[node]};
      if (lane.holder != kNobody) seen.holder = name_of(lane.holder);
      for (const auto waiter : lane.queue) {
        if (waiter != kNobody) seen.waiters.push_back(name_of(waiter));
      }
      view.partitions.push_back(std::move(seen));
    }
    const partitions::Plan plan = partitions::decide(view);
    State next = state;
    for (int i = 0; i < setting_.count; ++i) {
      if (state.lanes[i].holder == kNobody) next.lanes[i].seen_free |= bit(node);
    }
    for (const auto& hand_over : plan.hand_over) {
      next.lanes[hand_over.partition].own[node] = Own::draining;
      next.lanes[hand_over.partition].to = static_cast<std::int8_t>(hand_over.to[0] - 'a');
    }
    for (const auto i : plan.withdraw) withdraw(next, static_cast<int>(i), node);
    for (const auto i : plan.take) {
      next.lanes[i].own[node] = Own::taking;
      next.lanes[i].request[node] = Request::take;
    }
    for (const auto i : plan.wait_for) {
      next.lanes[i].own[node] = Own::waiting;
      next.lanes[i].request[node] = Request::wait;
    }
    return next;
  }

  const PartitionSetting setting_;
};

struct Hash {
  std::size_t operator()(const State& state) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(&state), sizeof state});  // NOLINT
  }
};
struct Same {
  bool operator()(const State& a, const State& b) const {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
};

// Breadth first, then a depth-first search for a circle among the states without changes to come.
class Search {
 public:
  explicit Search(const PartitionSetting& setting) : world_(setting) {
    report_.title = setting.title;
  }

  Report run() {
    const auto began = std::chrono::steady_clock::now();
    add(world_.start(), 0, "");
    for (std::uint32_t at = 0; at < states_.size() && report_.problem.empty(); ++at) expand(at);
    if (report_.problem.empty()) find_circle();
    report_.states = states_.size();
    report_.complete = report_.problem.empty();
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report_;
  }

 private:
  struct Known {
    const State* state = nullptr;
    std::uint32_t from = 0;
    std::uint32_t depth = 0;
    std::string what;
    std::vector<std::uint32_t> next;  // only of states without changes to come
  };

  std::uint32_t add(const State& state, std::uint32_t from, std::string what) {
    const auto [it, is_new] = index_.emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (!is_new) return it->second;
    const std::uint32_t depth = states_.empty() ? 0 : states_[from].depth + 1;
    states_.push_back({&it->first, from, depth, std::move(what), {}});
    report_.depth = std::max<std::size_t>(report_.depth, depth);
    if (const auto wrong = world_.wrong_now(state); !wrong.empty()) {
      fail(wrong, it->second);
    }
    return it->second;
  }

  void expand(std::uint32_t at) {
    const State state = *states_[at].state;
    auto steps = world_.steps(state);
    if (steps.empty()) {
      if (const auto wrong = world_.wrong_at_rest(state); !wrong.empty()) fail(wrong, at);
    }
    const bool calm = World::is_calm(state);
    for (Step& step : steps) {
      ++report_.transitions;
      const auto next = add(step.next, at, std::move(step.what));
      if (calm) states_[at].next.push_back(next);
    }
  }

  void find_circle() {
    std::vector<char> color(states_.size(), 0);
    for (std::uint32_t root = 0; root < states_.size(); ++root) {
      if (color[root] != 0 || states_[root].next.empty()) continue;
      std::vector<std::pair<std::uint32_t, std::size_t>> path{{root, 0}};
      color[root] = 1;
      while (!path.empty()) {
        auto& [at, position] = path.back();
        if (position == states_[at].next.size()) {
          color[at] = 2;
          path.pop_back();
          continue;
        }
        const std::uint32_t next = states_[at].next[position++];
        if (color[next] == 1) return fail("something moves for ever", next);
        if (color[next] == 0) {
          color[next] = 1;
          path.emplace_back(next, 0);
        }
      }
    }
  }

  void fail(const std::string& problem, std::uint32_t at) {
    if (!report_.problem.empty()) return;
    report_.problem = problem;
    report_.depth = states_[at].depth;
    std::vector<std::uint32_t> way;
    for (auto step = at; step != 0; step = states_[step].from) way.push_back(step);
    std::reverse(way.begin(), way.end());
    report_.trace = "  " + world_.print(world_.start()) + "\n";
    for (const auto step : way) {
      report_.trace +=
          "  " + states_[step].what + "\n      " + world_.print(*states_[step].state) + "\n";
    }
  }

  const World world_;
  Report report_;
  std::unordered_map<State, std::uint32_t, Hash, Same> index_;
  std::vector<Known> states_;
};

}  // namespace

std::vector<PartitionSetting> partition_settings() {
  return {
      {.title = "a replica joins one, 4 partitions",
       .count = 4,
       .nodes = 2,
       .members = "a",
       .joins = 1},
      {.title = "the third joins, 4 partitions", .count = 4, .members = "ab", .joins = 1},
      {.title = "the third joins with the first rank, 5 partitions",
       .count = 5,
       .members = "bc",
       .joins = 1},
      {.title = "one of three leaves, 5 partitions", .count = 5, .members = "abc", .leaves = 1},
      {.title = "one of three crashes, 5 partitions", .count = 5, .members = "abc", .crashes = 1},
      {.title = "a registration is lost, 4 partitions",
       .count = 4,
       .members = "abc",
       .lost_registrations = 1},
      {.title = "one member never acts, another crashes, 4 partitions",
       .count = 4,
       .members = "abc",
       .mute = "b",
       .crashes = 1},
      {.title = "one joins and one crashes, 3 partitions",
       .count = 3,
       .members = "ab",
       .joins = 1,
       .crashes = 1},
      {.title = "one joins and one leaves, 3 partitions",
       .count = 3,
       .members = "ab",
       .joins = 1,
       .leaves = 1},
      {.title = "one leaves and one crashes, 3 partitions",
       .count = 3,
       .members = "abc",
       .leaves = 1,
       .crashes = 1},
      {.title = "one joins and one crashes, 5 partitions",
       .count = 5,
       .members = "ab",
       .joins = 1,
       .crashes = 1},
      {.title = "a registration is lost and one crashes, 4 partitions",
       .count = 4,
       .members = "abc",
       .crashes = 1,
       .lost_registrations = 1},
      {.title = "one joins, one leaves, one crashes, 2 partitions",
       .count = 2,
       .members = "ab",
       .joins = 1,
       .leaves = 1,
       .crashes = 1},
      {.title = "two join two, 4 partitions", .count = 4, .nodes = 4, .members = "ab", .joins = 2},
  };
}

Report explore_partitions(const PartitionSetting& setting) { return Search(setting).run(); }

}  // namespace baton::explore
