// Random request sequences over a few names: the store under test must answer as the core does. A
// failing seed is printed with the shortest sequence that still fails.
// BATON_MODEL_SEED=n runs that one; BATON_MODEL_SEQUENCES=n runs so many; each BATON_TEST_SEED has
// sequences of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include "core/apply.h"
#include "harness.h"
#include "store/memory/memory_store.h"
#include "support/seed.h"

namespace baton::test {
namespace {

struct Step {
  Millis advance{0};
  std::vector<Request> batch;
};

const std::vector<std::string> kKeys = {"DEFAULT:a", "DEFAULT:b", "DEFAULT:c:1"};

// Draws sequences in which most grants live as real ones do (asked for, claimed, renewed,
// converted, released under one set of names) and some break every habit.
class Generator {
 public:
  Generator(std::uint64_t seed, const Capabilities& can) : random_(seed), can_(can) {
    for (auto& slot : slots_) renew_slot(slot);
  }

  std::vector<Step> sequence() {
    std::vector<Step> steps(10 + below(40));
    const bool quiet = one_in(3);  // one caller is nearly alone
    for (Step& step : steps) {
      step.advance = pick_advance();
      if (quiet ? !one_in(3) : one_in(6)) {
        step.batch = {habit()};
        continue;
      }
      if (one_in(6)) {
        step.batch = crowd();
        continue;
      }
      const std::size_t size = below(4) == 0 ? 2 + below(3) : 1;
      for (std::size_t i = 0; i < size; ++i) step.batch.push_back(request());
    }
    return steps;
  }

 private:
  struct Slot {
    std::uint64_t number = 0;
    std::vector<Target> targets;
    Millis ttl{0};
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  Mode pick_mode() {
    static constexpr Mode kLikely[] = {Mode::X, Mode::X,  Mode::X,  Mode::S,  Mode::S,
                                       Mode::U, Mode::IX, Mode::IS, Mode::SIX};
    const Mode mode = kLikely[below(std::size(kLikely))];
    const bool known = std::ranges::find(can_.modes, mode) != can_.modes.end();
    return known || one_in(10) ? mode : can_.modes[below(can_.modes.size())];
  }

  Millis pick_advance() {
    static constexpr int kLikely[] = {0, 0, 0, 1, 100, 999, 1000, 1001, 2500, 5000, 10000};
    return Millis(kLikely[below(std::size(kLikely))]);
  }

  std::vector<Target> pick_targets() {
    std::vector<std::string> keys = kKeys;
    std::shuffle(keys.begin(), keys.end(), random_);
    keys.resize(one_in(can_.max_set > 1 ? 4 : 40) ? 2 + below(2) : 1);
    std::vector<Target> targets;
    for (auto& key : keys) targets.push_back({key, pick_mode()});
    return targets;
  }

  void renew_slot(Slot& slot) {
    slot.number = ++last_grant_;
    slot.targets = pick_targets();
    slot.ttl = Millis(one_in(3) ? 2'000 : 10'000);
  }

  NoteChange pick_change(std::uint64_t odds) {
    NoteChange change;
    if (one_in(odds)) change.ordinal = static_cast<std::int64_t>(below(4));
    if (one_in(odds)) change.text = "note " + std::to_string(below(100));
    return change;
  }

  Request request() {
    Slot& slot = slots_[below(slots_.size())];
    if (one_in(8)) renew_slot(slot);
    Request request = acquire(slot.number, slot.targets);
    request.ttl = slot.ttl;
    request.owner = "node-" + std::to_string(slot.number % 3);
    if (one_in(12)) request.targets = pick_targets();
    const auto dice = below(100);
    if (dice < 38) return finish_acquire(std::move(request));
    if (dice < 54) return finish_claim(request);
    if (dice < 64) {
      Request renew = same_targets(Verb::renew, request);
      renew.change = pick_change(8);
      return renew;
    }
    if (dice < 74) {
      Request convert = same_targets(Verb::convert, request);
      for (Target& target : convert.targets) target.mode = pick_mode();
      if (!one_in(3)) convert.queue_ttl = kQueueTtl;
      return convert;
    }
    if (dice < 87) return finish_release(request);
    return finish_rest(request, dice);
  }

  // Many callers of one process at once: alike but for name and grant, save for a stray one. What
  // they take they mostly end together, too.
  std::vector<Request> crowd() {
    std::vector<Request> batch;
    if (!crowd_.empty() && one_in(2)) {
      for (const Request& taken : crowd_) batch.push_back(same_targets(Verb::release, taken));
      if (one_in(2)) crowd_.clear();
      return batch;
    }
    const Mode mode = pick_mode();
    const Millis ttl(one_in(3) ? 2'000 : 10'000);
    const Millis queue_ttl(one_in(3) ? 5'000 : 0);
    const Millis at_least_for(one_in(6) ? 3'000 : 0);
    for (const std::string& key : kKeys) {
      Request& one = batch.emplace_back(acquire(++last_grant_, key, mode, queue_ttl));
      one.ttl = ttl;
      one.at_least_for = at_least_for;
      one.owner = one_in(10) ? "node-2" : "node-1";
    }
    crowd_ = batch;
    return batch;
  }

  // One caller that takes the same names again and again, on terms that seldom change, whatever
  // becomes of its grants in between.
  Request habit() {
    if (!habit_) {
      Request take = acquire(last_grant_ + 1, kKeys[below(2)], one_in(4) ? Mode::S : Mode::X);
      if (one_in(12)) {  // it gives up first, and its request comes all the same
        Request cancel = same_targets(Verb::cancel, take);
        cancel.tombstone_ttl = Millis(2'000);
        return cancel;
      }
      ++last_grant_;
      take.ttl = Millis(one_in(8) ? 2'000 : 10'000);
      take.at_least_for = Millis(one_in(6) ? 3'000 : 0);
      take.schema_version = one_in(20) ? 1 : 0;
      take.owner = "node-1";
      take.channel = "process-0";
      habit_ = take;
      return take;
    }
    const auto dice = below(12);
    const Verb verb = dice < 2   ? Verb::convert
                      : dice < 4 ? Verb::renew
                      : dice < 5 ? Verb::break_
                                 : Verb::release;
    Request next = same_targets(verb, *habit_);
    if (verb == Verb::convert) next.targets[0].mode = pick_mode();
    if (verb == Verb::break_) next.reason = "because";
    if (verb == Verb::release && !one_in(8)) habit_.reset();
    return next;
  }

  Request finish_acquire(Request request) {
    if (!one_in(3)) request.queue_ttl = Millis(one_in(3) ? 1'000 : 5'000);
    if (one_in(8)) request.at_least_for = Millis(3'000);
    if (one_in(6)) request.if_ordinal_below = static_cast<std::int64_t>(below(4));
    request.change = pick_change(6);
    if (one_in(4)) request.metadata = {{"purpose", "a \"quoted\" purpose"}, {"n", "1"}};
    if (one_in(50)) request.schema_version = 1;
    return request;
  }

  Request finish_claim(const Request& request) {
    Request claim = same_targets(Verb::claim, request);
    if (one_in(2)) claim.queue_ttl = kQueueTtl;
    return claim;
  }

  Request finish_release(const Request& request) {
    Request release = same_targets(Verb::release, request);
    release.change = pick_change(6);
    if (one_in(5) && release.targets.size() == 1) release.to = "node-" + std::to_string(below(3));
    return release;
  }

  Request finish_rest(const Request& request, std::uint64_t dice) {
    if (dice < 93) {
      Request cancel = same_targets(Verb::cancel, request);
      if (one_in(2)) cancel.tombstone_ttl = Millis(2'000);
      cancel.converting = one_in(3);
      return cancel;
    }
    Request look = same_targets(dice < 96 ? Verb::break_ : Verb::get, request);
    look.targets.resize(1);
    if (look.verb == Verb::break_) {
      if (one_in(2)) look.grant = {};
      look.immediately = one_in(2);
      look.reason = "because";
    }
    return look;
  }

  std::mt19937_64 random_;
  Capabilities can_;
  std::array<Slot, 5> slots_;
  std::vector<Request> crowd_;
  std::optional<Request> habit_;  // what it has taken
  std::uint64_t last_grant_ = 0;
};

// Compares replies up to the values of tokens, which only have to be in step: one of ours for one
// of the core's, and in the same order for each name.
class Comparison {
 public:
  std::string problem;

  bool same(const Request& request, const Reply& expected, const Reply& actual) {
    const auto differ = [&](const std::string& what) {
      problem = what + "\n    request:  " + describe(request) +
                "\n    core:     " + describe(expected) + "\n    store:    " + describe(actual);
      return false;
    };
    if (expected.outcome != actual.outcome) return differ("outcome");
    if (expected.tokens.size() != actual.tokens.size()) return differ("number of tokens");
    for (std::size_t i = 0; i < expected.tokens.size(); ++i) {
      if (!in_step(expected.tokens[i], actual.tokens[i])) return differ("token");
      auto& of_name = granted_[request.targets[i].key];
      const auto place = of_name.emplace(expected.tokens[i], actual.tokens[i]).first;
      const bool above = place == of_name.begin() || std::prev(place)->second < place->second;
      const auto next = std::next(place);
      const bool below = next == of_name.end() || place->second < next->second;
      if (!above || !below) return differ("tokens of one name are not in the core's order");
    }
    if (expected.note != actual.note) return differ("note");
    if (expected.retry_after != actual.retry_after) return differ("retry_after");
    if (!same_holders(expected.holders, actual.holders)) return differ("holders");
    if (expected.info.has_value() != actual.info.has_value()) return differ("info");
    if (expected.info && !same(*expected.info, *actual.info)) return differ("info");
    return true;
  }

  bool same(const LockInfo& expected, const LockInfo& actual) {
    if (expected.key != actual.key || expected.waiting != actual.waiting ||
        expected.note != actual.note || !same_holders(expected.holders, actual.holders) ||
        expected.waiters.size() != actual.waiters.size()) {
      return false;
    }
    for (std::size_t i = 0; i < expected.waiters.size(); ++i) {
      const WaiterInfo& a = expected.waiters[i];
      const WaiterInfo& b = actual.waiters[i];
      if (a.grant != b.grant || a.mode != b.mode || a.predicate != b.predicate ||
          a.owner != b.owner || a.converting != b.converting) {
        return false;
      }
    }
    return true;
  }

 private:
  bool in_step(Token expected, Token actual) {
    const auto [it, is_new] = tokens_.emplace(expected, actual);
    return it->second == actual && (!is_new || seen_.insert(actual).second);
  }

  static bool alike(const HolderInfo& a, const HolderInfo& b) {
    return a.grant == b.grant && a.mode == b.mode && a.predicate == b.predicate &&
           a.owner == b.owner && a.metadata == b.metadata && a.ttl == b.ttl &&
           a.held_for == b.held_for && a.expires_in == b.expires_in && a.claimed == b.claimed &&
           a.released == b.released && a.revoked == b.revoked && a.reason == b.reason;
  }

  // In any order. One grant may stand here once for each of several names, whose tokens need not be
  // in the same order in both: so those that are known find theirs first.
  bool same_holders(std::vector<HolderInfo> expected, std::vector<HolderInfo> actual) {
    if (expected.size() != actual.size()) return false;
    const auto by_token = [](const HolderInfo& a, const HolderInfo& b) {
      return a.token < b.token;
    };
    std::sort(expected.begin(), expected.end(), by_token);
    std::sort(actual.begin(), actual.end(), by_token);
    std::stable_partition(expected.begin(), expected.end(),
                          [&](const HolderInfo& holder) { return tokens_.contains(holder.token); });
    return std::ranges::all_of(expected, [&](const HolderInfo& holder) {
      const auto known = tokens_.find(holder.token);
      const auto it = std::ranges::find_if(actual, [&](const HolderInfo& other) {
        const bool fits =
            known == tokens_.end() ? !seen_.contains(other.token) : known->second == other.token;
        return fits && alike(holder, other);
      });
      if (it == actual.end() || !in_step(holder.token, it->token)) return false;
      actual.erase(it);
      return true;
    });
  }

  std::map<Token, Token> tokens_;
  std::set<Token> seen_;
  std::map<std::string, std::map<Token, Token>> granted_;
};

// What the store shows of all names must be what the core would show.
std::string compare_find(LockStore& store, const core::LockTable& table, core::StoreTime now,
                         Comparison& comparison) {
  Query query;
  query.idle = true;
  query.max_waiters = 100;
  auto page = store.find(query, soon());
  if (!page) return "find: " + page.error().message;
  std::map<std::string, LockInfo> expected;
  for (const auto& [key, state] : table.names) {
    LockInfo info = core::describe(key, state, now, 100);
    if (core::matches(query, info)) expected.emplace(key, std::move(info));
  }
  if (page->items.size() != expected.size()) {
    return "find shows " + std::to_string(page->items.size()) + " names, the core " +
           std::to_string(expected.size());
  }
  for (const LockInfo& info : page->items) {
    if (!expected.contains(info.key) || !comparison.same(expected[info.key], info)) {
      return "find differs at " + info.key;
    }
  }
  return {};
}

using MakeStore = std::function<std::unique_ptr<LockStore>(std::shared_ptr<ManualTime>)>;

// The first difference in words, or nothing.
std::string run(const std::vector<Step>& steps, const MakeStore& make) {
  auto time = std::make_shared<ManualTime>();
  const auto store = make(time);
  const Capabilities can = store->capabilities();
  core::LockTable table;
  core::Effects effects;
  Comparison comparison;
  for (const Step& step : steps) {
    time->advance(step.advance);
    const auto replies = store->apply(step.batch, soon());
    if (!replies) return "apply failed: " + replies.error().message;
    if (replies->size() != step.batch.size()) return "a reply for each request, please";
    for (std::size_t i = 0; i < step.batch.size(); ++i) {
      if (core::beyond(can, step.batch[i])) {
        if ((*replies)[i].outcome == Outcome::unsupported) continue;
        return "not said to be unsupported: " + describe(step.batch[i]);
      }
      const Reply expected = core::apply(table, step.batch[i], time->now(), effects);
      if (!comparison.same(step.batch[i], expected, (*replies)[i])) return comparison.problem;
    }
  }
  return compare_find(*store, table, time->now(), comparison);
}

// Without the steps, and then without the requests, that it does not take.
std::vector<Step> shrink(std::vector<Step> steps, const MakeStore& make) {
  int tries = 400;
  bool smaller = true;
  const auto take_if_it_fails = [&](std::vector<Step> fewer) {
    if (--tries < 0 || run(fewer, make).empty()) return;
    steps = std::move(fewer);
    smaller = true;
  };
  while (smaller && tries > 0) {
    smaller = false;
    for (std::size_t i = steps.size(); i-- > 0;) {
      std::vector<Step> fewer = steps;
      const Millis advance = fewer[i].advance;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (i < fewer.size()) fewer[i].advance += advance;
      take_if_it_fails(std::move(fewer));
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (std::size_t j = steps[i].batch.size(); j-- > 0 && steps[i].batch.size() > 1;) {
        std::vector<Step> fewer = steps;
        fewer[i].batch.erase(fewer[i].batch.begin() + static_cast<std::ptrdiff_t>(j));
        take_if_it_fails(std::move(fewer));
      }
    }
  }
  return steps;
}

std::string print(const std::vector<Step>& steps) {
  std::ostringstream out;
  for (const Step& step : steps) {
    out << "  +" << step.advance.count() << " ms\n";
    for (const Request& request : step.batch) out << "    " << describe(request) << '\n';
  }
  return out.str();
}

struct Failure {
  std::uint64_t seed = 0;
  std::vector<Step> steps;
  std::string text;
};

std::optional<Failure> first_failure(const MakeStore& make, std::uint64_t first, int count) {
  const Capabilities can = make(std::make_shared<ManualTime>())->capabilities();
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    const auto steps = Generator(seed, can).sequence();
    const std::string first_problem = run(steps, make);
    if (first_problem.empty()) continue;
    auto fewer = shrink(steps, make);
    std::string problem = run(fewer, make);
    if (problem.empty()) problem = "not every time; at first: " + first_problem;
    std::string text = "seed " + std::to_string(seed) + ": " + problem + "\n" + print(fewer);
    return Failure{seed, std::move(fewer), std::move(text)};
  }
  return std::nullopt;
}

TEST(Model, the_store_answers_as_the_core_does) {
  const char* one = std::getenv("BATON_MODEL_SEED");
  const char* many = std::getenv("BATON_MODEL_SEQUENCES");
  constexpr std::uint64_t kOfOneRun = 100'000;
  const std::uint64_t first =
      one != nullptr ? std::strtoull(one, nullptr, 10) : seed_or(0) * kOfOneRun + 1;
  const auto count = one != nullptr    ? 1
                     : many != nullptr ? std::atoi(many)
                                       : factory().model_sequences();
  const auto failure = first_failure(
      [](std::shared_ptr<ManualTime> time) {
        return factory().fresh_with_long_limits(std::move(time));
      },
      first, count);
  EXPECT_FALSE(failure) << failure->text;
  RecordProperty("sequences", count);
}

// Takes a name for busy once it was released.
class GrudgingStore final : public LockStore {
 public:
  explicit GrudgingStore(const std::shared_ptr<ManualTime>& time)
      : inner_(store::make_memory_store_at([time] { return time->now(); })) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    auto replies = inner_->apply(batch, deadline);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::string& key = batch[i].targets.front().key;
      if (batch[i].verb == Verb::release) released_.insert(key);
      if (batch[i].verb == Verb::acquire && released_.contains(key)) {
        (*replies)[i] = Reply{.outcome = Outcome::busy};
      }
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  std::unique_ptr<LockStore> inner_;
  std::set<std::string> released_;
};

TEST(Model, a_wrong_store_is_caught_with_its_seed_and_the_shortest_sequence) {
  const MakeStore make = [](const std::shared_ptr<ManualTime>& time) {
    return std::make_unique<GrudgingStore>(time);
  };
  const auto failure = first_failure(make, 1, 100);
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->text.starts_with("seed " + std::to_string(failure->seed) + ": outcome\n"))
      << failure->text;
  std::vector<Verb> verbs;
  for (const Step& step : failure->steps) {
    for (const Request& request : step.batch) {
      verbs.push_back(request.verb);
      EXPECT_NE(failure->text.find("\n    " + describe(request) + "\n"), std::string::npos);
    }
  }
  EXPECT_EQ(verbs, (std::vector{Verb::release, Verb::acquire})) << failure->text;
  const auto again = first_failure(make, failure->seed, 1);
  ASSERT_TRUE(again) << "its seed does not show it";
  EXPECT_EQ(again->text, failure->text);
}

}  // namespace
}  // namespace baton::test
