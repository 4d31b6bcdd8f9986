#pragma once

// All jobs of one node: when to look at the store, and which attempts to make. It does no I/O and
// reads no clock: its driver (scheduler_impl.cc, or a test with a fleet of engines) tells it the
// time, makes the looks and attempts that it asks for, and tells it what came of them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/backoff.h"
#include "schedule/decide.h"
#include "schedule/job.h"

namespace baton::schedule {

struct EngineSettings {
  std::string node;
  std::string role;
  std::size_t workers = 16;
  Millis rank_step{25};
  Millis poll_every{500};
  std::size_t few_jobs = 4;  // so many at most are looked at by name instead of all
};

class Engine {
 public:
  using Event = std::function<void(SchedulerListener&)>;

  explicit Engine(EngineSettings settings) : settings_(std::move(settings)) {}

  // False if there is a job of that name.
  bool add(JobSpec job, const Moment& moment);

  // From its next fire on; what runs goes on as it is.
  void add_or_replace(JobSpec job, const Moment& moment);
  // A job of which something runs is there until that has ended.
  void remove(const std::string& job, const Moment& moment);

  struct Tick {
    std::vector<Attempt> start;
    bool look = false;            // saw_jobs or look_failed comes of it
    std::vector<std::string> at;  // at these jobs; none named: at all that there are
    bool poll = false;            // for commands and nodes: saw_fleet or poll_failed comes of it
    Instant next = Instant::max();
  };
  [[nodiscard]] Tick tick(const Moment& moment);
  // When tick() has something to do, as things stand.
  [[nodiscard]] Instant next() const;

  // The jobs that tick() wanted to look at, as the store has them; `began` is when the look was
  // begun.
  void saw_jobs(const std::vector<LockInfo>& jobs, Instant began, const Moment& moment);
  void look_failed(const Moment& moment);
  void saw_fleet(const std::vector<LockInfo>& controls, const std::vector<NodeInfo>& nodes,
                 const Moment& moment);
  void poll_failed(const Moment& moment);

  // The wall clock was set: everything that was to be done at a time of it is thought over.
  void rethink(const Moment& moment);

  // How long the store took to answer an attempt. While it is slow, attempts are gathered, and
  // those behind others give them more time.
  void answered(std::chrono::nanoseconds took);

  // The outcome of an attempt. Each call ends the attempt, except began(), and ended(): its handler
  // has returned, so its worker is free, and its lock is about to be released.
  void began(const std::string& job, const Fire& fire, const Moment& moment);
  void ended(const std::string& job);
  void refused(const std::string& job, const Error& error, const Moment& moment);
  void done(const std::string& job, const JobNote& note, Millis parked_for, const Moment& moment);
  void lost(const std::string& job, const Moment& moment);
  // It was never made: the job was removed.
  void withdrawn(const std::string& job, const Moment& moment);

  [[nodiscard]] std::vector<Event> take_events() { return std::exchange(events_, {}); }
  [[nodiscard]] std::size_t busy() const { return busy_ + ending_; }
  // Whether there are so many jobs that what is asked for them is worth gathering.
  [[nodiscard]] bool gathers() const { return tick_gap() > Millis(0); }
  [[nodiscard]] const JobSpec* find(const std::string& job) const;

 private:
  enum class State : std::uint8_t { idle, asking, running, ending };

  struct Entry {
    explicit Entry(JobSpec job) : spec(std::move(job)) {}
    JobSpec spec;
    JobView view;
    std::optional<std::string> text;  // of the note, as the store has it; unset: as we wrote it
    std::int64_t offset = -1;         // of its turns, as its note says or as it would be written
    ControlNote control;
    Instant control_since{};
    Instant wake = Instant::max();
    Instant hold_off{};  // nothing is tried before
    core::Backoff backoff{Millis(100), Millis(5'000)};
    Instant due_since{};
    Fire fire;  // running
    Instant run_began{};
    State state = State::idle;
    bool due = false;   // counted in the open cycle of its group
    bool told = false;  // why it does not run although it is due
    bool stuck = false;
    bool removed = false;  // goes when its attempt has ended
  };
  struct Group {
    std::size_t open = 0;
    Instant began{};
    Cycle cycle;
  };
  enum class DueEnd : std::uint8_t { locked, skipped, neither };

  void wake_at(Entry& entry, Instant at);
  void process(Entry& entry, const Moment& moment, Tick& tick);
  void act(Entry& entry, Decision decision, const Moment& moment, Tick& tick);
  void look_for_stuck(Entry& entry, const Moment& moment);
  void want_look(const Entry& entry);
  [[nodiscard]] std::vector<std::string> where_to_look() const;
  static const std::string& text_of_note(Entry& entry);
  void take_in(Entry& entry, const LockInfo* info, Instant began, const Moment& moment);
  void end_attempt(Entry& entry);
  bool gone(Entry& entry, const Moment& moment);
  void erase(Entry& entry);
  void free_worker(Entry& entry);
  bool update(Entry& entry, const LockInfo* info, Instant began, const Moment& moment);
  void note_skipped(Entry& entry, const JobNote& note, const Moment& moment);
  [[nodiscard]] static bool is_taken(const Entry& entry);
  void tell_waiting(Entry& entry, const Moment& moment);
  void mark_due(Entry& entry, const Moment& moment);
  void close_due(Entry& entry, DueEnd how, const Moment& moment);
  [[nodiscard]] Millis tick_gap() const;
  [[nodiscard]] Millis rank_step() const;
  [[nodiscard]] NodePosition position_for(const Entry& entry) const;
  void give_offsets();
  void heed_offset(const Entry& entry);
  void tell_given_up(Entry& entry, const JobNote& note);
  [[nodiscard]] Fire fire_of(const Entry& entry, const JobNote& note) const;
  void log(LogLevel level, const std::string& job, std::string message);

  EngineSettings settings_;
  std::unordered_map<std::string, std::unique_ptr<Entry>> jobs_;
  std::set<std::pair<Instant, Entry*>> queue_;
  std::map<std::string, Group> groups_;
  std::vector<std::string> nodes_;  // live, of our role, ordered
  std::vector<Event> events_;
  std::size_t busy_ = 0;    // workers
  std::size_t ending_ = 0;  // fires that have left their worker
  std::size_t stuck_ = 0;
  bool fleet_known_ = false;
  bool offsets_given_ = false;
  bool look_wanted_ = false;
  std::set<std::string_view> wanting_;  // jobs that have reason to look
  bool looking_ = false;
  bool polling_ = false;
  bool look_fails_ = false;
  Instant look_began_{};
  std::vector<std::string> looking_at_;  // none: at all
  std::size_t names_ = 0;                // of jobs, that the last look at all has found
  Instant look_after_{};                 // so that looking never takes most of the time
  Instant poll_at_{};
  Instant tick_after_{};                 // so that what is due in a short time is done together
  Instant start_after_{};                // so that attempts go together
  std::chrono::nanoseconds latency_{0};  // of an attempt, lately
  core::Backoff look_backoff_{Millis(100), Millis(5'000)};
};

}  // namespace baton::schedule
