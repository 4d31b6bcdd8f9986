#include "explore/eventlog_world.h"

#include <algorithm>
#include <array>
#include <optional>

#include "eventlog/frontier.h"
#include "explore/search.h"

namespace baton::explore {
namespace {

using eventlog::Frontier;
using eventlog::Holder;
using eventlog::Look;
using eventlog::Position;

constexpr int kMostRows = 5;
constexpr int kMostWriters = 4;

enum class Phase : std::uint8_t {
  waiting,
  open,       // has locked the log
  preparing,  // the lock of the parent is the prepared transaction's, that of the leaf is not yet
  prepared,
  unlocking,  // committed, and still holds its locks
  committed,
  gone,
};

struct WriterState {
  Phase phase = Phase::waiting;
  std::uint8_t drawn = 0;   // positions
  std::uint8_t number = 0;  // of its virtualtransaction
  std::uint8_t lowest = 0;  // S of the last whole look before it locked the log
  bool renamed = false;     // known as a prepared transaction only
};

struct Reader {
  std::optional<Frontier> frontier;  // of this session; none: not connected
  std::optional<Look> look;          // that has begun
  bool listed = false;               // and has come to the frontier: rows may be read
  std::uint8_t last_whole_look = 0;  // its S
  std::uint8_t statement = 0;        // the rows that the look's first statement saw; for a mutant
};

struct Dump {
  std::array<bool, kMostWriters> committed{};
  std::uint8_t sequence = 0;
  std::uint8_t handled = 0;
  Position progress = 0;
};

struct State {
  std::array<std::uint8_t, kMostRows> positions{};  // 0: not drawn
  std::array<WriterState, kMostWriters> writers{};
  std::uint8_t sequence = 0;  // how much has been drawn
  std::uint8_t durable = 0;   // of that, on disk
  std::uint8_t numbers = 0;   // of virtualtransactions
  std::uint8_t handled = 0;   // a bit a row
  Position progress = 0;
  Reader reader;
  std::optional<Dump> dump;
  std::int8_t reader_crashes = 0;
  std::int8_t server_crashes = 0;
  std::int8_t restores = 0;
};

using Step = WorldStep<State>;

class LogWorld {
 public:
  explicit LogWorld(const LogSetting& setting) : setting_(setting) {
    for (std::size_t w = 0; w < setting.writers.size(); ++w) {
      for (int k = 0; k < setting.writers[w].rows; ++k) writer_of_.push_back(static_cast<int>(w));
    }
    rows_ = static_cast<int>(writer_of_.size());
    writers_ = static_cast<int>(setting.writers.size());
  }

  State start() const {
    State state;
    state.reader_crashes = static_cast<std::int8_t>(setting_.reader_crashes);
    state.server_crashes = static_cast<std::int8_t>(setting_.server_crashes);
    state.restores = static_cast<std::int8_t>(setting_.restores);
    return state;
  }

  std::vector<Step> steps(const State& state) const {
    std::vector<Step> all;
    for (int w = 0; w < writers_; ++w) add_writer(state, w, all);
    add_reader(state, all);
    add_faults(state, all);
    return all;
  }

  // In any state.
  std::string wrong_now(const State& state) const {
    for (int i = 0; i < rows_; ++i) {
      if (visible(state, i) && state.positions[i] <= state.progress && !handled(state, i)) {
        return "a committed row is left behind the progress";
      }
    }
    if (!state.reader.frontier || !state.reader.listed) return {};
    const Position frontier = state.reader.frontier->position();
    if (frontier > state.sequence) return "the frontier is ahead of what has been drawn";
    for (int i = 0; i < rows_; ++i) {
      if (is_open(state.writers[writer_of_[i]]) && state.positions[i] != 0 &&
          state.positions[i] <= frontier) {
        return "the frontier has passed a row that can still become visible";
      }
    }
    return {};
  }

  bool is_end(const State& state) const {
    for (int w = 0; w < writers_; ++w) {
      const Phase phase = state.writers[w].phase;
      if (phase != Phase::committed && phase != Phase::gone) return false;
    }
    for (int i = 0; i < rows_; ++i) {
      if (visible(state, i) && !handled(state, i)) return false;
    }
    return true;
  }

  std::string key(const State& state) const {
    std::string key;
    const auto number = [&](std::int64_t value) { key += static_cast<char>(value + 1); };
    for (int i = 0; i < rows_; ++i) number(state.positions[i]);
    for (int w = 0; w < writers_; ++w) {
      const WriterState& writer = state.writers[w];
      number(static_cast<int>(writer.phase)), number(writer.drawn), number(writer.number);
      number(writer.lowest), number(writer.renamed ? 1 : 0);
    }
    number(state.sequence), number(state.durable), number(state.numbers), number(state.handled);
    number(state.progress), number(state.reader_crashes), number(state.server_crashes);
    number(state.restores);
    if (state.dump) {
      for (const bool committed : state.dump->committed) number(committed ? 1 : 0);
      number(state.dump->sequence), number(state.dump->handled), number(state.dump->progress);
    }
    const Reader& reader = state.reader;
    number(reader.listed ? 1 : 0), number(reader.last_whole_look), number(reader.statement);
    key += reader.frontier ? reader.frontier->describe() : "-";
    if (reader.look) {
      key += "|";
      number(reader.look->last_value), number(reader.look->is_called ? 1 : 0);
      for (const Holder& holder : reader.look->holders) {
        key += holder.transaction + (holder.prepared ? "p" : "h");
      }
    }
    return key;
  }

  std::string print(const State& state) const {
    std::string text;
    for (int i = 0; i < rows_; ++i) {
      if (state.positions[i] == 0) continue;
      text += std::to_string(state.positions[i]) + (visible(state, i) ? "" : "-") +
              (handled(state, i) ? "* " : " ");
    }
    text += "progress " + std::to_string(state.progress);
    if (state.reader.frontier) text += " {" + state.reader.frontier->describe() + "}";
    return text;
  }

 private:
  static bool is_open(const WriterState& writer) {
    return writer.phase == Phase::open || writer.phase == Phase::preparing ||
           writer.phase == Phase::prepared;
  }

  bool visible(const State& state, int i) const {
    const Phase phase = state.writers[writer_of_[i]].phase;
    return phase == Phase::unlocking || phase == Phase::committed;
  }

  static bool handled(const State& state, int i) { return ((state.handled >> i) & 1) != 0; }

  std::uint8_t visible_rows(const State& state) const {
    std::uint8_t rows = 0;
    for (int i = 0; i < rows_; ++i) {
      if (visible(state, i)) rows |= static_cast<std::uint8_t>(1U << i);
    }
    return rows;
  }

  // --- writers ---

  bool session_is_free(const State& state, int w) const {
    for (int v = 0; v < writers_; ++v) {
      const Phase phase = state.writers[v].phase;
      const bool busy =
          phase == Phase::open || phase == Phase::preparing || phase == Phase::unlocking;
      if (v != w && busy && setting_.writers[v].session == setting_.writers[w].session) {
        return false;
      }
    }
    return true;
  }

  void add_writer(const State& state, int w, std::vector<Step>& all) const {
    const LogWriter& plan = setting_.writers[w];
    const WriterState& writer = state.writers[w];
    const std::string name = "writer " + std::to_string(w);
    const auto step = [&](const std::string& what, auto change) {
      State next = state;
      change(next, next.writers[w]);
      all.push_back({name + " " + what, next, {}});
    };
    const auto commits = [&] {
      step("commits", [](State& next, WriterState& own) {
        own.phase = Phase::unlocking;
        next.durable = next.sequence;
      });
    };
    switch (writer.phase) {
      case Phase::waiting:
        if (!session_is_free(state, w)) break;
        step("opens the log", [](State& next, WriterState& own) {
          own.phase = Phase::open;
          own.number = ++next.numbers;
          own.lowest = next.reader.last_whole_look;
        });
        break;
      case Phase::open:
        if (writer.drawn < plan.rows) {
          step("draws a position", [&](State& next, WriterState& own) {
            next.positions[first_row_of(w) + own.drawn++] = ++next.sequence;
          });
        } else if (plan.prepared) {
          step("is being prepared", [](State& next, WriterState& own) {
            own.phase = Phase::preparing;
            next.durable = next.sequence;
          });
        } else {
          commits();
        }
        break;
      case Phase::preparing:
        step("is prepared", [&](State&, WriterState& own) {
          own.phase = Phase::prepared;
          own.renamed = setting_.prepare_renames;
        });
        break;
      case Phase::prepared: commits(); break;
      case Phase::unlocking:
        step("lets go of its locks",
             [](State&, WriterState& own) { own = {.phase = Phase::committed}; });
        break;
      case Phase::committed:
      case Phase::gone: break;
    }
    if (plan.rolls_back && (writer.phase == Phase::open || writer.phase == Phase::prepared)) {
      step("rolls back", [&](State& next, WriterState&) { roll_back(next, w); });
    }
  }

  int first_row_of(int w) const {
    return static_cast<int>(std::find(writer_of_.begin(), writer_of_.end(), w) -
                            writer_of_.begin());
  }

  void roll_back(State& state, int w) const {
    state.writers[w] = {.phase = Phase::gone};
    for (int i = 0; i < rows_; ++i) {
      if (writer_of_[i] == w) state.positions[i] = 0;
    }
  }

  // --- the reader ---

  static void read_sequence(const State& state, Look& look) {
    look.is_called = state.sequence != 0;
    look.last_value = std::max<Position>(state.sequence, 1);
  }

  void list_locks(const State& state, Look& look) const {
    for (int w = 0; w < writers_; ++w) {
      const WriterState& writer = state.writers[w];
      if (!is_open(writer) && writer.phase != Phase::unlocking) continue;
      const bool of_parent = !setting_.writers[w].into_leaf;
      const bool of_leaf = true;
      if (!of_parent && !of_leaf) continue;
      const int pid = 100 + setting_.writers[w].session;
      const Holder own{.transaction = "3/" + std::to_string(writer.number), .pid = pid};
      const Holder prepared{.transaction = setting_.prepare_renames || writer.renamed
                                               ? "-1/" + std::to_string(w)
                                               : own.transaction,
                            .prepared = true};
      const bool is_prepared = writer.phase == Phase::prepared ||
                               (writer.phase == Phase::unlocking && setting_.writers[w].prepared);
      // Its locks change hands one by one.
      if (writer.phase == Phase::preparing && of_leaf) look.holders.push_back(own);
      if (is_prepared || (writer.phase == Phase::preparing && of_parent)) {
        look.holders.push_back(prepared);
      } else if (writer.phase != Phase::preparing) {
        look.holders.push_back(own);
      }
    }
  }

  // S of the last look before the youngest of all holders; a prepared one may be older than it
  // seems.
  std::string waits_too_much(const State& state, Position before) const {
    const Reader& reader = state.reader;
    Position least = reader.frontier->last_drawn();
    for (int w = 0; w < writers_; ++w) {
      const WriterState& writer = state.writers[w];
      if (!is_open(writer) && writer.phase != Phase::unlocking) continue;
      least = std::min<Position>(least, writer.lowest);
      if (setting_.writers[w].prepared) least = std::min(least, before);
    }
    if (reader.frontier->position() >= least) return {};
    return "the frontier waits for a transaction that had not opened the log";
  }

  void add_reader(const State& state, std::vector<Step>& all) const {
    State next = state;
    Reader& reader = next.reader;
    if (!reader.frontier) {
      reader.frontier.emplace(state.progress);
      reader.last_whole_look = static_cast<std::uint8_t>(state.progress);
      for (auto& writer : next.writers) writer.lowest = reader.last_whole_look;
      all.push_back({"the reader connects", next, {}});
      return;
    }
    if (reader.listed) {
      all.push_back(read_rows(state));
    } else if (!reader.look) {
      reader.look.emplace();
      reader.statement = 0;
      read_sequence(state, *reader.look);
      all.push_back({"the reader reads the sequence", next, {}});
    } else {
      list_locks(state, *reader.look);
      const Position before = reader.frontier->position();
      reader.frontier->look(*reader.look);
      reader.look.reset();
      reader.listed = true;
      reader.last_whole_look = static_cast<std::uint8_t>(reader.frontier->last_drawn());
      all.push_back({"the reader lists the locks", next, waits_too_much(next, before)});
    }
  }

  // And saves the progress, in one transaction.
  Step read_rows(const State& state) const {
    Step step{.what = "the reader handles rows", .next = state, .wrong = {}};
    State& next = step.next;
    const std::uint8_t seen = visible_rows(state);
    std::vector<std::pair<Position, int>> rows;
    for (int i = 0; i < rows_; ++i) {
      const Position position = state.positions[i];
      if (((seen >> i) & 1) != 0 && position > state.progress &&
          position <= state.reader.frontier->position()) {
        rows.emplace_back(position, i);
      }
    }
    std::sort(rows.begin(), rows.end());
    const bool more = static_cast<int>(rows.size()) > setting_.page;
    if (more) rows.resize(setting_.page);
    for (const auto& [position, i] : rows) {
      if (handled(state, i)) step.wrong = "a row is handled twice";
      next.handled |= static_cast<std::uint8_t>(1U << i);
      next.progress = position;
    }
    next.reader.listed = more;
    return step;
  }

  // --- faults ---

  // Whatever had a session with the server has lost it, and with it all that it remembers.
  static void disconnect(State& state) { state.reader = {}; }

  void add_faults(const State& state, std::vector<Step>& all) const {
    if (state.reader_crashes > 0 && state.reader.frontier) {
      State next = state;
      --next.reader_crashes;
      disconnect(next);
      all.push_back({"the reader crashes", next, {}});
    }
    if (state.server_crashes > 0) {
      State next = state;
      --next.server_crashes;
      disconnect(next);
      next.numbers = 0;
      for (int w = 0; w < writers_; ++w) {
        WriterState& writer = next.writers[w];
        if (writer.phase == Phase::open) roll_back(next, w);
        if (writer.phase == Phase::preparing) writer.phase = Phase::prepared;
        if (writer.phase == Phase::prepared) writer.renamed = true;
        if (writer.phase == Phase::unlocking) writer = {.phase = Phase::committed};
      }
      all.push_back({"the server crashes", next, {}});
      // What was drawn by transactions that are not on disk comes back.
      next.sequence = next.durable;
      if (state.durable != state.sequence) {
        all.push_back({"the server crashes and positions come back", next, {}});
      }
    }
    if (state.restores > 0 && !state.dump) {
      State next = state;
      next.dump = Dump{.committed = {},
                       .sequence = state.sequence,
                       .handled = state.handled,
                       .progress = state.progress};
      for (int w = 0; w < writers_; ++w) {
        const Phase phase = state.writers[w].phase;
        next.dump->committed[w] = phase == Phase::committed || phase == Phase::unlocking;
      }
      all.push_back({"a dump is made", next, {}});
    }
    if (state.restores > 0 && state.dump) {
      State next = state;
      --next.restores;
      restore(next, *state.dump);
      all.push_back({"the dump is restored", next, {}});
    }
  }

  void restore(State& state, const Dump& dump) const {
    disconnect(state);
    state.numbers = 0;
    for (int w = 0; w < writers_; ++w) {
      if (dump.committed[w]) {
        state.writers[w] = {.phase = Phase::committed};
      } else if (state.writers[w].phase != Phase::waiting) {
        roll_back(state, w);
      }
    }
    state.sequence = state.durable = dump.sequence;
    state.handled = dump.handled;
    state.progress = dump.progress;
    state.dump.reset();
  }

  const LogSetting setting_;
  std::vector<int> writer_of_;  // by row
  int rows_ = 0;
  int writers_ = 0;
};

}  // namespace

// The small ones first: most mutants die there.
std::vector<LogSetting> log_settings() {
  return {
      {.title = "two writers", .writers = {{}, {.session = 1}}},
      {.title = "two writers of one session, one of another", .writers = {{}, {}, {.session = 1}}},
      {.title = "one writes straight into a leaf",
       .writers = {{.into_leaf = true}, {.session = 1, .rolls_back = true}}},
      {.title = "three sessions, pages of one",
       .writers = {{.rows = 2}, {.session = 1}, {.session = 2}},
       .page = 1},
      {.title = "a prepared transaction beside two others; a crash of the reader",
       .writers = {{.prepared = true, .rolls_back = true}, {}, {.session = 1}},
       .reader_crashes = 1},
      {.title = "the same on an old server",
       .writers = {{.prepared = true, .rolls_back = true}, {}, {.session = 1}},
       .prepare_renames = true},
      {.title = "two prepared transactions on an old server",
       .writers = {{.prepared = true}, {.session = 1, .prepared = true}},
       .prepare_renames = true},
      {.title = "the server crashes beside a prepared transaction, and positions come back",
       .writers = {{.prepared = true}, {.rows = 2, .session = 1}},
       .server_crashes = 1},
      {.title = "a crash of the server, then of the reader; pages of one",
       .writers = {{.rows = 2, .rolls_back = true}, {.rows = 2, .session = 1}},
       .page = 1,
       .reader_crashes = 1,
       .server_crashes = 1},
      {.title = "a dump is restored",
       .writers = {{.prepared = true}, {.rows = 2, .session = 1}},
       .restores = 1},
  };
}

Report explore_log(const LogSetting& setting) {
  return Search(LogWorld(setting), setting.title, "a committed row is never handled").run();
}

}  // namespace baton::explore
