#include "explore/relay_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "explore/search.h"
#include "relay/look.h"

namespace baton::explore {
namespace {

using relay::Look;
using relay::Mark;
using relay::Position;
using relay::Snapshot;
using relay::Xid;

constexpr int kMostRows = 6;
constexpr int kMostWriters = 4;
constexpr int kMostRelays = 2;
constexpr const char* kRoute = "q";

// A row's next_retry_at.
enum class Retry : std::uint8_t { none, at_a_time, infinity };

struct TableRow {
  std::uint8_t position = 0;  // 0: not drawn yet
  std::uint8_t xid = 0;
  char status = 'P';  // PENDING, SENT, FAILED, DISCARDED
  Retry retry = Retry::none;
  std::uint8_t attempts = 0;
  std::uint8_t published = 0;  // whether the broker took it
  bool skipped = false;        // FAILED, and its followers went on
};

enum class Phase : std::uint8_t { at_work, prepared, committed, gone };

struct WriterState {
  Phase phase = Phase::at_work;
  std::uint8_t xid = 0;
  std::uint8_t drawn = 0;  // positions
};

struct Sent {  // and the broker has decided, but the relay does not know yet
  Position position = 0;
  PublishOutcome outcome = PublishOutcome::taken;
};

struct Relay {
  std::uint8_t token = 0;  // 0: not running
  std::optional<Look> look;
  std::vector<Sent> sent;
  std::vector<Sent> overdue;
  std::set<Position> read;  // by its looks since it took over
};

struct State {
  std::array<TableRow, kMostRows> rows{};
  std::array<WriterState, kMostWriters> writers{};
  std::uint8_t last_position = 0;
  std::uint8_t next_xid = 3;
  std::uint8_t ended_xid = 2;    // the highest one that has ended
  std::uint8_t durable_xid = 3;  // after a crash the next one is at least this
  std::uint8_t cluster = 1;
  Snapshot seen;
  std::uint8_t seen_by = 1;  // the cluster
  std::uint8_t fence = 0;
  std::uint8_t seconds = 0;
  std::int8_t relay_crashes = 0;
  std::int8_t take_overs = 0;
  std::int8_t database_crashes = 0;
  std::int8_t restores = 0;
  std::int8_t returns = 0;
  std::int8_t refusals = 0;
  std::int8_t unknowns = 0;
  std::int8_t overdues = 0;
  std::int8_t operator_actions = 0;
  bool faults = false;  // after which an event may be published twice
  std::array<Relay, kMostRelays> relays{};
};

using Step = WorldStep<State>;

class RelayWorld {
 public:
  explicit RelayWorld(const RelaySetting& setting) : setting_(setting) {
    for (std::size_t w = 0; w < setting.writers.size(); ++w) {
      for (const char aggregate : setting.writers[w].rows) {
        aggregates_.push_back(std::string(1, aggregate));
        writer_of_.push_back(static_cast<int>(w));
      }
    }
    rows_ = static_cast<int>(aggregates_.size());
    writers_ = static_cast<int>(setting.writers.size());
  }

  State start() const {
    State state;
    state.relay_crashes = static_cast<std::int8_t>(setting_.relay_crashes);
    state.take_overs = static_cast<std::int8_t>(setting_.take_overs);
    state.database_crashes = static_cast<std::int8_t>(setting_.database_crashes);
    state.restores = static_cast<std::int8_t>(setting_.restores);
    state.returns = static_cast<std::int8_t>(setting_.returns);
    state.refusals = static_cast<std::int8_t>(setting_.refusals);
    state.unknowns = static_cast<std::int8_t>(setting_.unknowns);
    state.overdues = static_cast<std::int8_t>(setting_.overdues);
    state.operator_actions = static_cast<std::int8_t>(setting_.operator_actions);
    take_over(state, 0);
    return state;
  }

  std::vector<Step> steps(const State& state) const {
    std::vector<Step> all;
    for (int w = 0; w < writers_; ++w) add_writer(state, w, all);
    for (int r = 0; r < kMostRelays; ++r) add_relay(state, r, all);
    add_faults(state, all);
    add_operator(state, all);
    return all;
  }

  // In any state.
  std::string wrong_now(const State& state) const {
    if (state.seen_by != state.cluster) return {};
    for (int i = 0; i < rows_; ++i) {
      const TableRow& row = state.rows[i];
      if (visible(state, i) && state.seen.shows(row.xid) && row.status == 'P' &&
          row.retry == Retry::none) {
        return "the checkpoint shows an event that is not settled";
      }
    }
    return {};
  }

  bool is_end(const State& state) const {
    for (int w = 0; w < writers_; ++w) {
      const Phase phase = state.writers[w].phase;
      if (phase != Phase::committed && phase != Phase::gone) return false;
    }
    std::set<std::string> failed;
    for (const int i : by_position(state)) {
      if (!visible(state, i)) continue;
      const TableRow& row = state.rows[i];
      if (row.status == 'F') failed.insert(aggregates_[i]);
      if (row.status == 'P' && (setting_.skip_failed || !failed.contains(aggregates_[i]))) {
        return false;
      }
      if (row.status == 'P' && row.retry == Retry::none) return false;
      if (row.status == 'S' && row.published == 0) return false;
    }
    return true;
  }

  std::string key(const State& state) const {
    std::string key;
    const auto number = [&](int value) { key += static_cast<char>(value + 1); };
    for (int i = 0; i < rows_; ++i) {
      const TableRow& row = state.rows[i];
      number(row.position), number(row.xid), number(row.status);
      number(static_cast<int>(row.retry)), number(row.attempts), number(row.published);
      number(row.skipped ? 1 : 0);
    }
    for (int w = 0; w < writers_; ++w) {
      number(static_cast<int>(state.writers[w].phase));
      number(state.writers[w].xid), number(state.writers[w].drawn);
    }
    number(state.last_position), number(state.next_xid), number(state.ended_xid);
    number(state.durable_xid), number(state.cluster), number(state.seen_by), number(state.fence);
    number(state.seconds), number(state.relay_crashes), number(state.take_overs);
    number(state.database_crashes), number(state.restores), number(state.returns);
    number(state.refusals), number(state.unknowns), number(state.operator_actions);
    number(state.overdues);
    number(state.faults ? 1 : 0);
    key += state.seen.text();
    for (const Relay& relay : state.relays) {
      key += "|";
      number(relay.token);
      if (relay.look) key += relay.look->describe();
      key += "r";
      for (const Position position : relay.read) number(static_cast<int>(position));
      key += "s";
      for (const Sent& sent : relay.sent) {
        number(static_cast<int>(sent.position)), number(static_cast<int>(sent.outcome));
      }
      key += "o";
      for (const Sent& sent : relay.overdue) {
        number(static_cast<int>(sent.position)), number(static_cast<int>(sent.outcome));
      }
    }
    return key;
  }

  std::string print(const State& state) const {
    std::string text;
    for (int i = 0; i < rows_; ++i) {
      const TableRow& row = state.rows[i];
      if (row.position == 0) continue;
      text += aggregates_[i] + std::to_string(row.position) + "(" + std::to_string(row.xid) + ")" +
              (visible(state, i) ? std::string(1, row.status) : "-") +
              (row.retry == Retry::none        ? ""
               : row.retry == Retry::at_a_time ? "t"
                                               : "i") +
              std::string(row.published, '*') + " ";
    }
    text += "seen " + state.seen.text();
    for (const Relay& relay : state.relays) {
      if (relay.look)
        text += " {" + std::to_string(relay.token) + ": " + relay.look->describe() + "}";
    }
    return text;
  }

 private:
  // --- the database ---

  bool visible(const State& state, int i) const {
    return state.writers[writer_of_[i]].phase == Phase::committed;
  }

  std::vector<int> by_position(const State& state) const {
    std::vector<int> all;
    for (int i = 0; i < rows_; ++i) {
      if (state.rows[i].position != 0) all.push_back(i);
    }
    std::sort(all.begin(), all.end(),
              [&](int a, int b) { return state.rows[a].position < state.rows[b].position; });
    return all;
  }

  int row_at(const State& state, Position position) const {
    for (int i = 0; i < rows_; ++i) {
      if (state.rows[i].position == position) return i;
    }
    return -1;
  }

  Snapshot snapshot(const State& state) const {
    Snapshot now{.xmin = state.ended_xid + Xid{1}, .xmax = state.ended_xid + Xid{1}};
    for (int w = 0; w < writers_; ++w) {
      const WriterState& writer = state.writers[w];
      const bool open = writer.phase == Phase::at_work || writer.phase == Phase::prepared;
      if (open && writer.xid != 0 && writer.xid < now.xmax) now.xip.push_back(writer.xid);
    }
    std::sort(now.xip.begin(), now.xip.end());
    if (!now.xip.empty()) now.xmin = now.xip.front();
    return now;
  }

  static void ended(State& state, std::uint8_t xid) {
    state.ended_xid = std::max(state.ended_xid, xid);
  }

  // What is committed is on disk, and with it the highest xid that it needs.
  static void durable(State& state) { state.durable_xid = state.next_xid; }

  relay::Row row_of(const State& state, int i) const {
    const TableRow& row = state.rows[i];
    return {.position = row.position,
            .xid = row.xid,
            .aggregate = aggregates_[i],
            .route = kRoute,
            .bytes = 1,
            .attempts = row.attempts};
  }

  // One statement: its snapshot and the rows.
  relay::Page select(const State& state, const relay::Read& read) const {
    relay::Page page{.now = snapshot(state)};
    const Snapshot& now = read.now ? *read.now : page.now;
    for (const int i : by_position(state)) {
      const TableRow& row = state.rows[i];
      if (!visible(state, i) || row.status != 'P' || row.retry != Retry::none) continue;
      if (!read.takes(row.xid, row.position, now)) continue;
      if (page.rows.size() == static_cast<std::size_t>(setting_.page)) {
        page.more = true;
        break;
      }
      page.rows.push_back(row_of(state, i));
    }
    return page;
  }

  std::vector<relay::Head> heads(const State& state) const {
    std::vector<relay::Head> heads;
    std::set<std::string> had;
    for (const int i : by_position(state)) {
      const TableRow& row = state.rows[i];
      if (!visible(state, i) || row.retry == Retry::none) continue;
      if (!had.insert(aggregates_[i]).second) continue;
      const bool due = relay::is_due(row.status == 'P', row.retry == Retry::infinity,
                                     row.retry == Retry::at_a_time);
      heads.push_back({.row = row_of(state, i), .due = due, .held = row.retry == Retry::infinity});
    }
    return heads;
  }

  std::vector<relay::Follower> followers(const State& state,
                                         const std::vector<std::string>& aggregates) const {
    std::vector<relay::Follower> followers;
    std::set<std::string> had;
    for (const int i : by_position(state)) {
      const TableRow& row = state.rows[i];
      if (!visible(state, i) || row.retry == Retry::none) continue;
      if (had.insert(aggregates_[i]).second) continue;  // the head
      if (std::find(aggregates.begin(), aggregates.end(), aggregates_[i]) == aggregates.end()) {
        continue;
      }
      followers.push_back(
          {.row = row_of(state, i), .held = row.status == 'P' && row.retry == Retry::infinity});
    }
    return followers;
  }

  // --- writers ---

  bool aggregate_is_free(const State& state, int w, const std::string& aggregate) const {
    for (int i = 0; i < rows_; ++i) {
      const WriterState& other = state.writers[writer_of_[i]];
      const bool open = other.phase == Phase::at_work || other.phase == Phase::prepared;
      if (writer_of_[i] != w && open && state.rows[i].position != 0 &&
          aggregates_[i] == aggregate) {
        return false;
      }
    }
    return true;
  }

  int first_row_of(int w) const {
    return static_cast<int>(std::find(writer_of_.begin(), writer_of_.end(), w) -
                            writer_of_.begin());
  }

  void add_writer(const State& state, int w, std::vector<Step>& all) const {
    const RelayWriter& plan = setting_.writers[w];
    const WriterState& writer = state.writers[w];
    const std::string name = "writer " + std::to_string(w);
    if (writer.phase != Phase::at_work && writer.phase != Phase::prepared) return;
    const int drawn = writer.drawn;
    const int count = static_cast<int>(plan.rows.size());
    if (writer.xid == 0) {
      State next = state;
      next.writers[w].xid = next.next_xid++;
      for (int k = 0; k < drawn; ++k) next.rows[first_row_of(w) + k].xid = next.writers[w].xid;
      all.push_back({name + " draws its xid", next, {}});
    }
    // The first row may have its position before the transaction has its xid.
    if (writer.phase == Phase::at_work && drawn < count && (writer.xid != 0 || drawn == 0) &&
        aggregate_is_free(state, w, std::string(1, plan.rows[drawn]))) {
      State next = state;
      TableRow& row = next.rows[first_row_of(w) + drawn];
      row.position = ++next.last_position;
      row.xid = writer.xid;
      ++next.writers[w].drawn;
      all.push_back({name + " draws a position", next, {}});
    }
    if (writer.xid != 0 && drawn == count) {
      if (plan.prepared && writer.phase == Phase::at_work) {
        State next = state;
        next.writers[w].phase = Phase::prepared;
        durable(next);
        all.push_back({name + " is prepared", next, {}});
      } else {
        State next = state;
        next.writers[w].phase = Phase::committed;
        ended(next, writer.xid);
        next.durable_xid = std::max<std::uint8_t>(next.durable_xid, writer.xid + 1);
        all.push_back({name + " commits", next, {}});
      }
    }
    if (plan.rolls_back) {
      State next = state;
      roll_back(next, w);
      all.push_back({name + " rolls back", next, {}});
    }
  }

  void roll_back(State& state, int w) const {
    WriterState& writer = state.writers[w];
    if (writer.xid != 0) ended(state, writer.xid);
    writer = {.phase = Phase::gone};
    for (int i = 0; i < rows_; ++i) {
      if (writer_of_[i] == w) state.rows[i] = {};
    }
  }

  // --- relays ---

  static Instant time(const State& state) {
    return Instant(std::chrono::seconds(10 + state.seconds));
  }

  void take_over(State& state, int r) const {
    Relay& relay = state.relays[r];
    relay.token = ++state.fence;
    relay.sent.clear();
    relay.overdue.clear();
    relay.read.clear();
    const auto begin = relay::take_over(state.seen, std::to_string(state.seen_by),
                                        std::to_string(state.cluster), snapshot(state).xmax);
    if (begin.restamp) {
      const std::uint8_t xid = state.next_xid++;
      for (int i = 0; i < rows_; ++i) {
        TableRow& row = state.rows[i];
        if (visible(state, i) && row.status == 'P' && row.retry == Retry::none) row.xid = xid;
      }
      ended(state, xid);
    }
    state.seen = begin.from;
    state.seen_by = state.cluster;
    durable(state);
    std::set<std::string> in_index;
    for (const auto& head : heads(state)) in_index.insert(head.row.aggregate);
    relay.look.emplace(
        begin.from, in_index,
        relay::LookOptions{
            .max_attempts = setting_.max_attempts,
            .first_delay = Millis(1),
            .on_failed = setting_.skip_failed ? relay::OnFailed::skip : relay::OnFailed::hold,
            .max_rows = 100,
        });
  }

  void add_relay(const State& state, int r, std::vector<Step>& all) const {
    const Relay& relay = state.relays[r];
    const std::string name = "relay " + std::to_string(r);
    if (relay.token == 0) {
      // Nobody owns the lane, or the lock of its owner has run out.
      const bool free = state.relays[1 - r].token == 0;
      if (!free && state.take_overs == 0) return;
      State next = state;
      if (!free) {
        --next.take_overs;
        next.faults = true;
      }
      take_over(next, r);
      all.push_back({name + " takes over", next, {}});
      return;
    }
    if (may_read(state, relay)) {
      add_look(state, r, name, all);
      State next = state;
      relay::Look& look = *next.relays[r].look;
      look.add_heads(heads(state), time(state));
      look.add_followers(followers(state, look.flowing(heads(state))));
      all.push_back({name + " reads the retry index", next, {}});
    } else {
      State next = state;
      next.relays[r] = {};
      all.push_back({name + " reads that it was taken over", next, {}});
    }
    add_publish(state, r, name, all);
    for (std::size_t i = 0; i < relay.sent.size(); ++i) {
      State next = state;
      const Sent sent = relay.sent[i];
      next.relays[r].sent.erase(next.relays[r].sent.begin() + static_cast<std::ptrdiff_t>(i));
      next.relays[r].look->confirm(sent.position, sent.outcome, "why", time(state));
      all.push_back({name + " learns of " + std::to_string(sent.position), next, {}});
      if (state.overdues == 0) continue;
      next.relays[r].look = relay.look;
      next.relays[r].look->overdue(sent.position, "why");
      next.relays[r].look->shut(kRoute, time(state) + std::chrono::seconds(1));
      next.relays[r].overdue.push_back(sent);
      --next.overdues;
      next.faults = true;
      all.push_back({name + " waits no longer for " + std::to_string(sent.position), next, {}});
    }
    for (std::size_t i = 0; i < relay.overdue.size(); ++i) {
      State next = state;
      const Sent sent = relay.overdue[i];
      auto& left = next.relays[r].overdue;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      next.relays[r].look->open(kRoute);
      const int row = row_at(state, sent.position);
      if (sent.outcome == PublishOutcome::taken && row >= 0) {
        next.relays[r].look->taken_late(row_of(state, row), time(state));
      }
      all.push_back({name + " learns late of " + std::to_string(sent.position), next, {}});
    }
    for (const std::size_t marks : {std::size_t{1}, std::size_t{10}}) {
      const relay::Batch batch = relay.look->batch(marks);
      if (batch.empty() || (marks == 10 && batch.marks.size() < 2)) continue;
      all.push_back(write(state, r, name, batch));
    }
  }

  // The statements of a look and of the retry index read the lane's fence as well. Once its rows
  // have marks of the next owner, what is left is no longer all that comes before.
  static bool may_read(const State& state, const Relay& relay) {
    return state.fence <= relay.token;
  }
  static bool may_write(const State& state, const Relay& relay) {
    return state.fence <= relay.token;
  }

  void add_look(const State& state, int r, const std::string& name, std::vector<Step>& all) const {
    const auto read = state.relays[r].look->next_read();
    if (!read) return;
    State next = state;
    const relay::Page page = select(state, *read);
    std::string wrong;
    for (const relay::Row& row : page.rows) {
      if (!next.relays[r].read.insert(row.position).second) wrong = "a look reads an event again";
    }
    next.relays[r].look->add(*read, page);
    all.push_back({name + (read->now ? " reads a page" : " looks"), next, wrong});
  }

  void add_publish(const State& state, int r, const std::string& name,
                   std::vector<Step>& all) const {
    State sending = state;
    relay::Window window{.max_messages = 1};
    const auto rows = sending.relays[r].look->publish(window, time(state));
    if (rows.empty()) {
      all.push_back({name + " gives up waiting", sending, {}});
      return;
    }
    const Position position = rows.front().position;
    const auto outcome = [&](PublishOutcome is, bool taken, std::int8_t State::*budget,
                             const std::string& what) {
      if (budget != nullptr && state.*budget == 0) return;
      State next = sending;
      if (budget != nullptr) --(next.*budget);
      next.relays[r].sent.push_back({position, is});
      Step step{name + " publishes " + std::to_string(position) + ": " + what, next, {}};
      if (taken) step.wrong = published(step.next, position, is);
      all.push_back(std::move(step));
    };
    outcome(PublishOutcome::taken, true, nullptr, "taken");
    outcome(PublishOutcome::returned, false, &State::returns, "returned");
    outcome(PublishOutcome::refused, false, &State::refusals, "refused");
    outcome(PublishOutcome::refused, true, &State::refusals, "refused by one queue");
    outcome(PublishOutcome::unknown, false, &State::unknowns, "lost");
    outcome(PublishOutcome::unknown, true, &State::unknowns, "taken, the confirm is lost");
  }

  // The broker takes an event: gives the promise that this breaks.
  std::string published(State& state, Position position, PublishOutcome is) const {
    const int i = row_at(state, position);
    if (i < 0 || !visible(state, i)) return "an event is published that is not committed";
    TableRow& row = state.rows[i];
    if (is != PublishOutcome::taken) state.faults = true;
    if (row.published > 0) {
      return state.faults ? "" : "an event is published twice without a fault";
    }
    row.published = 1;
    for (int j = 0; j < rows_; ++j) {
      const TableRow& other = state.rows[j];
      if (j == i || !visible(state, j) || aggregates_[j] != aggregates_[i]) continue;
      const bool passed = other.published > 0 || other.status == 'D' || other.skipped;
      if (other.position < row.position && !passed) {
        return "an event is published before an earlier one of its aggregate";
      }
    }
    return {};
  }

  Step write(const State& state, int r, const std::string& name, const relay::Batch& batch) const {
    State next = state;
    if (!may_write(state, state.relays[r])) {
      next.relays[r] = {};
      return {name + " is refused by the fence", next, {}};
    }
    for (const Mark& mark : batch.marks) apply(next, mark);
    if (batch.seen) next.seen = *batch.seen;
    durable(next);
    next.relays[r].look->written(batch);
    return {name + " writes " + std::to_string(batch.marks.size()) + " marks", next, {}};
  }

  void apply(State& state, const Mark& mark) const {
    const int i = row_at(state, mark.position);
    if (i < 0 || state.rows[i].status != 'P') return;
    TableRow& row = state.rows[i];
    row.attempts = static_cast<std::uint8_t>(mark.attempts);
    switch (mark.kind) {
      case Mark::Kind::sent:
        row.status = 'S';
        row.retry = Retry::none;
        break;
      case Mark::Kind::retry: row.retry = Retry::at_a_time; break;
      case Mark::Kind::hold: row.retry = Retry::infinity; break;
      case Mark::Kind::failed:
        row.status = 'F';
        row.skipped = setting_.skip_failed;
        row.retry = mark.indexed ? Retry::infinity : Retry::none;
        break;
    }
  }

  // --- what goes wrong ---

  void add_faults(const State& state, std::vector<Step>& all) const {
    for (int r = 0; r < kMostRelays && state.relay_crashes > 0; ++r) {
      if (state.relays[r].token == 0) continue;
      State next = state;
      --next.relay_crashes;
      next.relays[r] = {};
      next.faults = true;
      all.push_back({"relay " + std::to_string(r) + " crashes", next, {}});
    }
    if (state.database_crashes > 0) {
      State next = state;
      --next.database_crashes;
      next.faults = true;
      end_open_transactions(next, true);
      // Xids that left no trace on disk are drawn again.
      next.next_xid = next.durable_xid;
      next.ended_xid = static_cast<std::uint8_t>(next.next_xid - 1);
      reconnect(next);
      all.push_back({"the database crashes", next, {}});
    }
    if (state.restores > 0) {
      State next = state;
      --next.restores;
      next.faults = true;
      end_open_transactions(next, false);
      ++next.cluster;
      next.next_xid = next.durable_xid = 3;
      next.ended_xid = 2;
      reconnect(next);
      all.push_back({"a dump is restored into a younger cluster", next, {}});
    }
    // A confirm comes within a second, or at least within two.
    const bool waits =
        std::any_of(state.relays.begin(), state.relays.end(), [&](const Relay& relay) {
          // What is due in the retry index waits for its route there.
          return relay.look &&
                 (relay.look->next_time() > time(state) || relay.look->next_ask() > time(state)) &&
                 (relay.sent.empty() || state.seconds == 0);
        });
    if (waits) {
      State next = state;
      ++next.seconds;
      all.push_back({"a second passes", next, {}});
    }
  }

  void end_open_transactions(State& state, bool prepared_stay) const {
    for (int w = 0; w < writers_; ++w) {
      const WriterState& writer = state.writers[w];
      const bool begun = writer.xid != 0 || writer.drawn != 0;
      if ((writer.phase == Phase::at_work && begun) ||
          (writer.phase == Phase::prepared && !prepared_stay)) {
        roll_back(state, w);
      }
    }
  }

  // The sessions of all relays have ended with the server.
  static void reconnect(State& state) {
    for (Relay& relay : state.relays) relay = {};
  }

  void add_operator(const State& state, std::vector<Step>& all) const {
    if (state.operator_actions == 0) return;
    for (int i = 0; i < rows_; ++i) {
      if (state.rows[i].status != 'F') continue;
      State next = state;
      --next.operator_actions;
      next.rows[i].status = 'P';
      next.rows[i].retry = Retry::at_a_time;
      next.rows[i].attempts = 0;
      all.push_back({"an operator retries " + std::to_string(next.rows[i].position), next, {}});
      next.rows[i].status = 'D';
      next.rows[i].retry = Retry::none;
      all.push_back({"an operator discards " + std::to_string(next.rows[i].position), next, {}});
    }
  }

  const RelaySetting setting_;
  std::vector<std::string> aggregates_;  // by row
  std::vector<int> writer_of_;
  int rows_ = 0;
  int writers_ = 0;
};

}  // namespace

// The small ones first: most mutants die there.
std::vector<RelaySetting> relay_settings() {
  return {
      {.title = "a full queue and a crash", .writers = {{"aa"}}, .relay_crashes = 1, .refusals = 2},
      {.title = "two events each, pages of one", .writers = {{"ab"}, {"ab"}}, .page = 1},
      {.title = "the owner is paused and goes on",
       .writers = {{"a"}, {"a"}},
       .take_overs = 1,
       .returns = 1},
      {.title = "the owner is paused and goes on, three events",
       .writers = {{"aa"}, {"a"}},
       .take_overs = 1,
       .returns = 1,
       .max_attempts = 1},
      {.title = "a failed event is skipped",
       .writers = {{"a"}, {"aa"}},
       .relay_crashes = 1,
       .returns = 2,
       .operator_actions = 1,
       .skip_failed = true},
      {.title = "three writers, pages of one", .writers = {{"a"}, {"b"}, {"a"}}, .page = 1},
      {.title = "two writers of one aggregate, one of another; a rollback",
       .writers = {{"a"}, {"a"}, {.rows = "b", .rolls_back = true}}},
      {.title = "confirms are lost", .writers = {{"a"}, {"ab"}}, .returns = 1, .unknowns = 2},
      {.title = "a queue does not answer",
       .writers = {{"aa"}, {"ab"}},
       .unknowns = 1,
       .overdues = 1},
      {.title = "a full queue", .writers = {{"a"}, {"ab"}}, .refusals = 2},
      {.title = "a dump is restored, events are returned",
       .writers = {{"a"}, {"aa"}},
       .page = 1,
       .restores = 1,
       .returns = 1},
      {.title = "an event is returned twice", .writers = {{"aa"}, {"ab"}}, .returns = 2},
      {.title = "the database crashes beside a prepared transaction",
       .writers = {{.rows = "a", .prepared = true}, {"b"}, {"a"}},
       .database_crashes = 1},
      {.title = "the database crashes, and xids come back",
       .writers = {{"a"}, {.rows = "b", .rolls_back = true}, {"a"}},
       .database_crashes = 1},
      {.title = "a prepared transaction and a crash of the relay",
       .writers = {{.rows = "a", .prepared = true, .rolls_back = true}, {"b"}, {"a"}},
       .relay_crashes = 1},
      {.title = "an event fails; an operator retries or discards it; a crash",
       .writers = {{"a"}, {"a"}, {"a"}},
       .relay_crashes = 1,
       .returns = 2,
       .operator_actions = 1},
      {.title = "a dump is restored into a younger cluster",
       .writers = {{"ab"}, {"a"}},
       .restores = 1},
  };
}

Report explore_relay(const RelaySetting& setting) {
  return Search(RelayWorld(setting), setting.title, "a committed event is lost").run();
}

}  // namespace baton::explore
