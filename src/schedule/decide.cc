#include "schedule/decide.h"

#include <algorithm>

#include "node/wall_time.h"
#include "schedule/hash.h"
#include "schedule/rank.h"

namespace baton::schedule {
namespace {

using node::from_millis;
using node::to_millis;
using What = Decision::What;

constexpr Millis kLead{100};      // how much before its turn a node makes sure of what it knows
constexpr Millis kLookLeast{50};  // how often at most it looks whether a run that lasts is over
constexpr Millis kLookMost{1000};

Instant instant_of(WallTime time, const Moment& moment) {
  // Bounded, so that "never" of a schedule does not overflow.
  const auto far = std::chrono::hours(24 * 365);
  return moment.now + std::clamp<std::chrono::nanoseconds>(time - moment.wall, -far, far);
}

Decision wait_until(Instant at) { return {.what = What::wait, .at = at}; }
Decision look_at(Instant at) { return {.what = What::look, .at = at}; }

Millis jitter_of(const JobSpec& job, std::int64_t fire) {
  if (job.options.jitter <= Millis(0)) return Millis(0);
  const auto range = static_cast<std::uint64_t>(job.options.jitter.count()) + 1;
  return Millis(
      static_cast<std::int64_t>(stable_hash(job.name, static_cast<std::uint64_t>(fire)) % range));
}

Millis backoff_of(const JobOptions& options, int failures) {
  if (failures <= 0 || options.backoff <= Millis(0)) return Millis(0);
  const int doublings = std::min(failures - 1, 20);
  return std::min(options.backoff * (std::int64_t{1} << doublings), options.backoff_most);
}

// A fire that is later than this was missed.
Millis misfire_after(const JobSpec& job) {
  const Millis half = job.schedule.interval() / 2;
  return job.schedule.kind() == Schedule::Kind::cron
             ? Millis(60'000)
             : std::clamp(half, Millis(1'000), Millis(60'000));
}

class Judge {
 public:
  Judge(const JobSpec& job, const JobView& view, const Circumstances& around)
      : job_(job), view_(view), around_(around), now_(around.moment.now) {}

  Decision decide() const {
    if (!view_.known) return look_at(now_);
    if (!view_.note) return view_.held ? look_at(busy_until()) : registration();
    const JobNote& note = *view_.note;
    if (view_.held && !view_.parked) return note.started ? running(note) : taken(note);
    if (note.started && job_.options.on_crash == OnCrash::rerun) return again(note);
    return next(note.started ? given_up(note) : note);
  }

 private:
  [[nodiscard]] Millis delay(std::uint64_t turn) const {
    const bool agreed = view_.note && view_.note->offset >= 0;
    const std::uint64_t offset =
        agreed ? static_cast<std::uint64_t>(view_.note->offset) : job_.hash;
    const std::uint64_t mine = rank(around_.place.index, around_.place.nodes, turn, offset);
    return around_.rank_step * static_cast<std::int64_t>(mine);
  }

  [[nodiscard]] Instant busy_until() const {
    return std::clamp(view_.free_at + Millis(1), view_.seen_at + kLookLeast,
                      view_.seen_at + kLookMost);
  }

  // Goes at `at`, or behind others; those only with a look that is no older. The attempt is only
  // made when it is its time.
  template <typename MakeAttempt>
  [[nodiscard]] Decision go(Instant at, Millis behind, bool due, MakeAttempt make) const {
    const Instant mine = at + behind;
    if (mine > now_) {
      Decision later = behind > Millis(0) ? look_at(mine) : wait_until(mine);
      later.due = due;
      return later;
    }
    // A node that comes late has most likely been overtaken, as has one that is not the first in
    // turn: it looks before it starts the fire.
    const bool sure = behind == Millis(0) && now_ - mine <= around_.rank_step;
    if (!sure && view_.seen_at < mine) {
      Decision look = look_at(now_);
      look.due = due;
      return look;
    }
    return {.what = What::start, .at = now_, .due = due, .attempt = make()};
  }

  [[nodiscard]] Attempt attempt(Attempt::Kind kind, JobNote note) const {
    note.node = around_.node;
    note.schedule = job_.schedule.text();
    return {.kind = kind,
            .job = job_.name,
            .if_ordinal_below = view_.ordinal + 1,
            .note = std::move(note)};
  }

  [[nodiscard]] Decision registration() const {
    return go(view_.since, delay(0), false, [&] {
      JobNote first;
      first.due = first.began = to_millis(around_.moment.wall);
      first.offset = around_.offset;
      first.runs = around_.control.runs;
      first.skips = around_.control.skips;
      first.next = to_millis(next_due(job_, first));
      return attempt(Attempt::Kind::register_, std::move(first));
    });
  }

  // Somebody runs fire n. Its end brings the next one, its expiry a crash. Looking as late as
  // this never makes the next fire late: a delay counts from an end that is still to come.
  [[nodiscard]] Decision running(const JobNote& note) const {
    const Millis pause = std::clamp(job_.schedule.interval() / 4, kLookLeast, kLookMost);
    Instant again = view_.seen_at + std::max(job_.schedule.interval(), kLookLeast);
    if (job_.schedule.kind() != Schedule::Kind::fixed_delay) {
      const WallTime due = job_.schedule.next(from_millis(note.due), job_.name);
      const Millis lead = delay(static_cast<std::uint64_t>(note.fire + 1)) > Millis(0)
                              ? Millis(0)
                              : std::min(kLead, job_.schedule.interval() / 4);
      again = instant_of(due, around_.moment) - lead;
      if (again <= view_.seen_at) again = view_.seen_at + pause;
    }
    const Instant expired =
        view_.free_at + Millis(1) + delay(static_cast<std::uint64_t>(note.fire + note.attempt));
    return look_at(std::min(again, std::max(expired, view_.seen_at + kLookLeast)));
  }

  // Nothing of ours runs, but the lock is taken all the same: somebody took it by hand.
  [[nodiscard]] Decision taken(const JobNote& note) const {
    Decision decision = next(note);
    decision.attempt.reset();
    if (decision.what == What::start || decision.at <= now_) {
      decision.what = What::look;
      decision.at = busy_until();
    }
    return decision;
  }

  [[nodiscard]] Decision again(const JobNote& note) const {
    if (around_.control.paused) return wait_until(Instant::max());
    const Millis behind = delay(static_cast<std::uint64_t>(note.fire + note.attempt));
    const int most = job_.options.max_attempts;
    if (most > 0 && note.attempt >= most) {
      return go(view_.since, behind, false,
                [&] { return attempt(Attempt::Kind::give_up, no_more(note)); });
    }
    return go(view_.since, behind, true, [&] {
      JobNote started = note;
      started.attempt = note.attempt + 1;
      started.began = to_millis(around_.moment.wall);
      return attempt(Attempt::Kind::run, std::move(started));
    });
  }

  // A fire that crashes the node that runs it must not crash all nodes.
  [[nodiscard]] JobNote no_more(const JobNote& note) const {
    JobNote done = given_up(note);
    done.failures = note.failures + 1;
    done.last->ended = to_millis(around_.moment.wall);
    done.last->detail = "given up after " + std::to_string(note.attempt) +
                        (note.attempt == 1 ? " attempt" : " attempts");
    done.next = to_millis(next_due(job_, done));
    return done;
  }

  // on_crash: skip. Nobody knows when it ended; it counts from when it began.
  [[nodiscard]] JobNote given_up(const JobNote& note) const {
    JobNote done = note;
    done.started = false;
    remember_run(done,
                 {.fire = note.fire,
                  .due = note.due,
                  .started = note.began,
                  .ended = note.began,
                  .node = note.node,
                  .result = std::string(kCrashed),
                  .attempt = note.attempt},
                 job_.options.keep_runs);
    return done;
  }

  [[nodiscard]] JobNote following(const JobNote& note, WallTime due) const {
    JobNote next = note;
    next.fire = note.fire + 1;
    next.started = true;
    next.due = to_millis(due);
    next.began = to_millis(around_.moment.wall);
    next.attempt = 1;
    if (next.offset < 0) next.offset = around_.offset;
    next.manual = false;
    next.next = 0;
    return next;
  }

  [[nodiscard]] Decision next(const JobNote& note) const {
    const auto turn = static_cast<std::uint64_t>(note.fire + 1);
    const Instant parked = view_.parked ? view_.free_at : Instant::min();
    if (around_.control.runs > note.runs) {
      return go(std::max(around_.control_since, parked), delay(turn), true, [&] {
        JobNote asked = following(note, around_.moment.wall);
        asked.manual = true;
        asked.runs = note.runs + 1;
        return attempt(Attempt::Kind::run, std::move(asked));
      });
    }
    if (around_.control.paused) return wait_until(Instant::max());
    WallTime due = due_after(note);
    const bool skips = job_.options.misfire == Misfire::skip &&
                       job_.schedule.kind() != Schedule::Kind::fixed_delay;
    if (skips && around_.moment.wall - due > misfire_after(job_)) {
      due = around_.moment.wall - last_nominal(due) > misfire_after(job_)
                ? job_.schedule.next(around_.moment.wall, job_.name)
                : last_nominal(due);
    }
    const Instant at =
        std::max(instant_of(due, around_.moment) + jitter_of(job_, note.fire + 1), parked);
    const bool is_due = at <= now_;
    return go(at, delay(turn), is_due, [&] { return start_of(note, due); });
  }

  [[nodiscard]] WallTime last_nominal(WallTime due) const {
    return job_.schedule.latest(due, std::max(due, around_.moment.wall), job_.name);
  }

  [[nodiscard]] Attempt start_of(const JobNote& note, WallTime due) const {
    const bool nominal = job_.schedule.kind() != Schedule::Kind::fixed_delay;
    JobNote next = following(note, nominal && due < around_.moment.wall ? last_nominal(due) : due);
    if (around_.control.skips <= note.skips) return attempt(Attempt::Kind::run, std::move(next));
    next.started = false;
    next.skips = note.skips + 1;
    remember_run(next,
                 {.fire = next.fire,
                  .due = next.due,
                  .started = next.began,
                  .ended = next.began,
                  .node = around_.node,
                  .result = "skipped"},
                 job_.options.keep_runs);
    next.next = to_millis(next_due(job_, next));
    return attempt(Attempt::Kind::skip, std::move(next));
  }

  // Nobody's clock but our own is trusted to make us wait: never longer than a whole interval from
  // when we first saw this note.
  [[nodiscard]] WallTime due_after(const JobNote& note) const {
    const WallTime due = next_due(job_, note);
    const Millis back_off = backoff_of(job_.options, note.failures);
    if (job_.schedule.kind() != Schedule::Kind::cron) {
      const Millis most = std::max(job_.schedule.interval(), back_off);
      return std::min(due, view_.first_seen + most);
    }
    if (note.due <= to_millis(view_.first_seen) || back_off > Millis(0)) return due;
    const WallTime soon = job_.schedule.next(view_.first_seen, job_.name);
    return from_millis(note.due) > job_.schedule.next(soon, job_.name) ? soon : due;
  }

  const JobSpec& job_;
  const JobView& view_;
  const Circumstances& around_;
  Instant now_;
};

}  // namespace

WallTime next_due(const JobSpec& job, const JobNote& note) {
  const bool after_end = job.schedule.kind() == Schedule::Kind::fixed_delay;
  const std::int64_t ended = note.last ? note.last->ended : note.began;
  // The first run of a fixed delay is at once.
  if (after_end && note.fire == 0) return from_millis(note.began);
  const WallTime due = job.schedule.next(from_millis(after_end ? ended : note.due), job.name);
  return std::max(due, from_millis(ended) + backoff_of(job.options, note.failures));
}

Decision decide(const JobSpec& job, const JobView& view, const Circumstances& around) {
  return Judge(job, view, around).decide();
}

}  // namespace baton::schedule
