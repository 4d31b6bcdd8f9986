#include "explore/fences.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string_view>

#include "core/fence.h"

namespace baton::explore {
namespace {

constexpr int kTransactions = 2;  // of each holder

using Targets = std::vector<Target>;

struct FenceSetting {
  std::string title;
  std::vector<Targets> holders;
};

// What the holders write under is known here whatever the fence is shown of it.
struct Writer {
  Token token = 0;       // 0: not granted yet
  int begun = 0;         // transactions
  std::size_t rows = 0;  // taken in the current one
  bool open = false;
  auto operator<=>(const Writer&) const = default;
};

struct FenceWorld {
  std::vector<Writer> writers;
  Token last_token = 0;
  std::map<std::string, std::size_t> locked;           // row to writer
  std::set<std::pair<std::string, std::string>> seen;  // row to "mode token", committed
  std::set<std::size_t> committed;                     // writers that have committed something
  auto operator<=>(const FenceWorld&) const = default;
};

class FenceExplorer {
 public:
  explicit FenceExplorer(const FenceSetting& setting) : setting_(setting) {}

  Report run() {
    FenceWorld first;
    first.writers.resize(setting_.holders.size());
    add(first, nullptr, "");
    while (!queue_.empty() && report_.problem.empty()) {
      const auto* at = queue_.front();
      queue_.pop_front();
      expand(*at);
    }
    report_.title = setting_.title;
    report_.states = known_.size();
    report_.complete = report_.problem.empty();
    return report_;
  }

 private:
  struct Way {
    const std::pair<const FenceWorld, Way>* from = nullptr;
    std::string step;
    std::size_t depth = 0;
  };
  using Place = std::pair<const FenceWorld, Way>;

  void add(const FenceWorld& world, const Place* from, const std::string& step) {
    ++report_.transitions;
    const std::size_t depth = from == nullptr ? 0 : from->second.depth + 1;
    const auto [at, is_new] = known_.try_emplace(world, Way{from, step, depth});
    if (!is_new) return;
    queue_.push_back(&*at);
    report_.depth = std::max(report_.depth, depth);
  }

  void broken(const Place& at, const std::string& step, const std::string& problem) {
    if (!report_.problem.empty()) return;
    report_.problem = problem;
    std::string trace = step + "\n";
    for (const Place* place = &at; place->second.from != nullptr; place = place->second.from) {
      trace = place->second.step + "\n" + trace;
    }
    report_.trace = trace;
  }

  static std::string told(std::size_t writer, std::string_view what, std::string_view row = {}) {
    std::string text;
    text += static_cast<char>('A' + writer);
    text += what;
    text += row;
    return text;
  }

  // All that a writer holds, and what of it the fence is shown, in its order.
  [[nodiscard]] std::vector<FenceToken> held(std::size_t writer, Token token) const {
    std::vector<FenceToken> all;
    for (const Target& target : setting_.holders[writer])
      all.push_back({target.key, target.mode, token});
    return all;
  }
  [[nodiscard]] std::vector<FenceToken> shown(std::size_t writer, Token token) const {
    const Targets& targets = setting_.holders[writer];
    const std::vector<Token> tokens(targets.size(), token);
    return core::in_fence_order(core::fence_tokens(targets, tokens)).value();
  }

  // Not the function that the fence uses: that one is explored.
  [[nodiscard]] bool was_overtaken(const FenceWorld& world, std::size_t writer) const {
    const Token token = world.writers[writer].token;
    for (const std::size_t other : world.committed) {
      const Token newer = world.writers[other].token;
      if (other == writer || newer <= token) continue;
      for (const Target& mine : setting_.holders[writer]) {
        for (const Target& its : setting_.holders[other]) {
          if (mine.key == its.key && !compatible(its.mode, mine.mode)) return true;
        }
      }
    }
    return false;
  }

  static std::string text_of(const FenceToken& token) {
    return std::string(short_name(token.mode)) + " " + std::to_string(token.token);
  }
  [[nodiscard]] static bool refuses(const FenceWorld& world, const FenceToken& mine) {
    return std::any_of(world.seen.begin(), world.seen.end(), [&](const auto& row) {
      const auto space = row.second.find(' ');
      const FenceToken other{row.first, *parse_mode(row.second.substr(0, space)),
                             std::stoull(row.second.substr(space + 1))};
      return overtakes(other, mine);
    });
  }

  static void end(FenceWorld& world, std::size_t writer) {
    std::erase_if(world.locked, [&](const auto& row) { return row.second == writer; });
    world.writers[writer].open = false;
    world.writers[writer].rows = 0;
  }

  void expand(const Place& at) {
    const FenceWorld& world = at.first;
    bool anything = false;
    bool somebody_waits = false;
    for (std::size_t i = 0; i < world.writers.size(); ++i) {
      const Writer& writer = world.writers[i];
      FenceWorld next = world;
      if (writer.token == 0) {
        // The last holder was too slow to renew, and does not know it.
        next.writers[i].token = ++next.last_token;
        add(next, &at, told(i, " is granted its lease"));
      } else if (!writer.open) {
        if (writer.begun == kTransactions) continue;
        next.writers[i].open = true;
        ++next.writers[i].begun;
        add(next, &at, told(i, " begins a transaction"));
      } else if (!step(at, i, next)) {
        somebody_waits = true;
        continue;
      }
      anything = true;
    }
    if (somebody_waits && !anything) broken(at, "", "fence: writers wait for each other for ever");
  }

  // False if it has to wait for a row.
  bool step(const Place& at, std::size_t i, FenceWorld& next) {
    const auto rows = shown(i, next.writers[i].token);
    const std::size_t taken = next.writers[i].rows;
    if (taken == rows.size()) {
      const std::string what = told(i, " commits");
      if (was_overtaken(next, i)) {
        broken(at, what, "fence: an overtaken holder commits after its successor");
      }
      for (const FenceToken& row : rows) next.seen.emplace(row.key, text_of(row));
      next.committed.insert(i);
      end(next, i);
      add(next, &at, what);
      return true;
    }
    const FenceToken& row = rows[taken];
    const auto locked = next.locked.find(row.key);
    if (locked != next.locked.end() && locked->second != i) return false;
    if (refuses(next, row)) {
      const std::string what = told(i, " is refused at ", row.key);
      if (!was_overtaken(next, i)) broken(at, what, "fence: refused though nobody overtook it");
      end(next, i);
      add(next, &at, what);
      return true;
    }
    next.locked[row.key] = i;
    ++next.writers[i].rows;
    add(next, &at, told(i, " takes the row of ", row.key));
    return true;
  }

  const FenceSetting& setting_;
  std::map<FenceWorld, Way> known_;
  std::deque<const Place*> queue_;
  Report report_;
};

// Ancestors come after names in a request, whatever their keys are.
std::vector<FenceSetting> fence_settings() {
  const Target first{"page:7:1", Mode::X};
  const Target second{"page:7:2", Mode::X};
  const Target below{"document:7", Mode::IX};
  return {
      {"sets that overlap, named in any order",
       {{{"a", Mode::X}, {"b", Mode::X}}, {{"b", Mode::X}, {"a", Mode::X}}, {{"b", Mode::X}}}},
      {"pages of a document, and all of it",
       {{first, below}, {{"document:7", Mode::X}}, {second, below}}},
      {"readers of a page, and a writer of the document",
       {{{"page:7:1", Mode::S}, {"document:7", Mode::IS}},
        {{"page:7:1", Mode::S}, {"document:7", Mode::IS}},
        {{"document:7", Mode::SIX}}}},
      {"a set of pages of two documents",
       {{first, {"page:8:1", Mode::X}, below, {"document:8", Mode::IX}},
        {{"document:8", Mode::S}},
        {{"document:8", Mode::X}, {"document:7", Mode::X}}}},
  };
}

}  // namespace

Report explore_fences() {
  Report all;
  all.title = "fences";
  for (const FenceSetting& setting : fence_settings()) {
    Report one = FenceExplorer(setting).run();
    if (!one.problem.empty()) return one;
    all.states += one.states;
    all.transitions += one.transitions;
    all.depth = std::max(all.depth, one.depth);
  }
  all.complete = true;
  return all;
}

}  // namespace baton::explore
