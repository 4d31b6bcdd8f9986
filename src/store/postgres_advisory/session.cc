#include "store/postgres_advisory/session.h"

#include <charconv>

#include "json/json.h"

namespace baton::store::postgres_advisory {
namespace {

using postgres::Params;
using postgres::Rows;
using postgres::Statement;

const Statement kTake{0,
                      "advisory_take",
                      "SELECT outcome, token, ordinal, note, ends FROM baton_advisory.take($1, $2, "
                      "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
                      {20, 25, 2950, 21, 20, 20, 20, 20, 20, 25, 25, 25, 25, 16, 20, 20}};
const Statement kClaim{1,
                       "advisory_claim",
                       "SELECT outcome, ordinal, note FROM baton_advisory.claim($1, $2, $3, $4, "
                       "$5, $6, $7, $8, $9)",
                       {20, 25, 2950, 20, 20, 20, 25, 20, 20}};
// Plain SQL for what every holder does all the time; the function only where a note is written.
const Statement kBeat{2,
                      "advisory_beat",
                      "SELECT t.revoked, t.reason, coalesce(n.ordinal, 0), coalesce(n.text, ''), "
                      "pg_backend_pid() FROM baton_advisory.term t "
                      "LEFT JOIN baton_advisory.note n ON n.key = t.key "
                      "WHERE t.lock_key = $1 AND t.key = $2 AND t.grant_id = $3",
                      {20, 25, 2950}};
const Statement kBeatAndNote{
    3,
    "advisory_beat_and_note",
    "SELECT revoked, reason, ordinal, note, pid FROM baton_advisory.beat($1, $2, $3, $4, $5)",
    {20, 25, 2950, 20, 25}};
const Statement kFinish{4,
                        "advisory_finish",
                        "CALL baton_advisory.finish($1, $2, $3, $4, $5, $6, $7)",
                        {20, 25, 2950, 20, 25, 16, 20}};
const Statement kEnqueue{5,
                         "advisory_enqueue",
                         "SELECT baton_advisory.enqueue($1, $2, $3, $4, $5, $6)",
                         {20, 25, 2950, 21, 25, 25}};

// A session that is not in use is closed by the server after this long. That also bounds how long
// it can keep a lock that it got in a step which failed halfway.
constexpr Millis kUnused = std::chrono::minutes(1);

// Nothing but the idle timer may end a session: a keepalive that gives up earlier would free a lock
// that its holder still trusts. The connection check rids the queue of waiters that have died.
std::string begin_sql(Millis unused) {
  return "LISTEN baton_advisory;"
         "SELECT pg_backend_pid(), set_config('client_connection_check_interval', '1000', false),"
         " set_config('tcp_keepalives_idle', '0', false), set_config('tcp_user_timeout', '0', "
         "false), set_config('idle_session_timeout', '" +
         std::to_string(unused.count()) + "', false)";
}

std::int16_t number_of(Mode mode) { return static_cast<std::int16_t>(mode); }

int to_int(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void add(Params& params, const LockRef& lock) {
  params.add(lock.lock_key);
  params.add(std::string_view(lock.key));
  params.add(lock.grant);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const AdvisorySettings& settings,
                                               Deadline deadline) {
  auto connection = postgres::Connection::open(settings.sessions, deadline);
  if (!connection) return connection.error();
  std::unique_ptr<Session> session(new Session(settings, std::move(*connection)));
  auto begun = session->connection_->script(begin_sql(session->timer(kUnused)), deadline);
  if (!begun) {
    begun.error().in_doubt = false;
    return begun.error();
  }
  session->pid_ = to_int(begun->text(0, 0));
  // Now, while nobody waits for it.
  for (const Statement* statement : {&kTake, &kClaim, &kBeat, &kBeatAndNote, &kFinish}) {
    if (auto done = session->connection_->prepare(*statement, deadline); !done) return done.error();
  }
  return session;
}

Result<TermReply> Session::take(const LockRef& lock, const core::Claimant& claimant,
                                std::optional<std::int64_t> version, bool handed, Millis idle,
                                At at, Deadline deadline) {
  if (auto sent = send_take(lock, claimant, version, handed, idle, at, deadline); !sent) {
    return sent.error();
  }
  return finish_take(deadline);
}

Result<void> Session::send_take(const LockRef& lock, const core::Claimant& claimant,
                                std::optional<std::int64_t> version, bool handed, Millis idle,
                                At at, Deadline deadline) {
  Params params;
  add(params, lock);
  params.add(number_of(lock.mode));
  params.add(version);
  params.add(std::int64_t{claimant.ttl.count()});
  params.add(std::int64_t{claimant.at_least_for.count()});
  params.add(claimant.if_ordinal_below);
  params.add(claimant.change.ordinal);
  claimant.change.text ? params.add(std::string_view(*claimant.change.text)) : params.null();
  params.add(std::string_view(claimant.predicate));
  params.add(std::string_view(claimant.owner));
  claimant.metadata.empty()
      ? params.null()
      : params.add(std::string_view(nlohmann::json(claimant.metadata).dump()));
  params.add(handed);
  params.add(std::int64_t{timer(idle).count()});
  at ? params.add(std::int64_t{at->count()}) : params.null();
  if (!handed) write(claimant.change);
  take_sent_ = BootClock::now();
  auto sent = connection_->send(kTake, params, deadline);
  if (!sent) confirm_note(sent.error());
  return sent;
}

Result<TermReply> Session::finish_take(Deadline deadline) {
  const auto rows = connection_->collect(deadline);
  // The next question would be given this answer.
  if (!rows && rows.error().in_doubt) connection_->give_up();
  confirm_note(rows);
  if (!rows) return rows.error();
  wrote_since(take_sent_);
  TermReply term;
  term.took = static_cast<Took>(rows->integer(0, 0));
  term.token = static_cast<Token>(rows->integer(0, 1));
  term.note = {rows->integer(0, 2), std::string(rows->text(0, 3))};
  term.ends = StoreTime(rows->integer(0, 4));
  return term;
}

Result<TermReply> Session::claim(const LockRef& lock, const core::Claimant& claimant,
                                 std::optional<std::int64_t> version, At at, Deadline deadline) {
  Params params;
  add(params, lock);
  params.add(version);
  params.add(claimant.if_ordinal_below);
  params.add(claimant.change.ordinal);
  claimant.change.text ? params.add(std::string_view(*claimant.change.text)) : params.null();
  params.add(std::int64_t{timer(claimant.ttl).count()});
  at ? params.add(std::int64_t{at->count()}) : params.null();
  write(claimant.change);
  const Instant sent = BootClock::now();
  const auto rows = connection_->run(kClaim, params, deadline);
  confirm_note(rows);
  if (!rows) return rows.error();
  wrote_since(sent);
  TermReply term;
  term.took = static_cast<Took>(rows->integer(0, 0));
  term.note = {rows->integer(0, 1), std::string(rows->text(0, 2))};
  if (term.took == Took::revoked) term.reason = term.note.text;
  return term;
}

// Until the first beat, what it took to write is all that is known.
void Session::wrote_since(Instant sent) {
  write_took_ = std::chrono::ceil<Millis>(BootClock::now() - sent);
  beat_took_ = write_took_;
}

void Session::write(const NoteChange& change) {
  if (!change.empty()) unconfirmed_note_ = change;
}

// An error of the connection leaves it open what the server did.
void Session::confirm_note(const Result<Rows>& answer) {
  if (answer || (usable() && !answer.error().in_doubt)) unconfirmed_note_.reset();
}

void Session::answered(const Result<Rows>& answer) {
  confirm_note(answer);
  unanswered_ = false;
  beat_took_ = std::chrono::ceil<Millis>(BootClock::now() - beat_sent_);
}

// A beat whose answer nobody waited for would be taken for the answer to the next statement.
Result<void> Session::catch_up(Deadline deadline) {
  if (!unanswered_) return {};
  auto late = connection_->collect(deadline);
  if (!late && (!usable() || late.error().in_doubt)) return late.error();
  answered(late);
  return {};
}

Result<void> Session::send_beat(const LockRef& lock, const NoteChange& change, Deadline deadline) {
  if (auto heard = catch_up(BootClock::now()); !heard) return heard;
  Params params;
  add(params, lock);
  if (!change.empty()) {
    params.add(change.ordinal);
    change.text ? params.add(std::string_view(*change.text)) : params.null();
  }
  write(change);
  if (auto sent = connection_->send(change.empty() ? kBeat : kBeatAndNote, params, deadline);
      !sent) {
    return sent;
  }
  unanswered_ = true;
  beat_sent_ = BootClock::now();
  return {};
}

std::optional<Result<TermReply>> Session::poll_beat() {
  const auto answer = connection_->collect_now();
  if (!answer) return std::nullopt;
  answered(*answer);
  const Result<Rows>& rows = *answer;
  if (!rows) {
    last_error_ = rows.error().message;
    return rows.error();
  }
  TermReply term;
  // Another backend's answer would mean that somebody pools our sessions: then nothing is held.
  if (rows->size() != 1 || rows->integer(0, 4) != pid_) return term;
  term.took = rows->integer(0, 0) != 0 ? Took::revoked : Took::taken;
  term.reason = rows->text(0, 1);
  term.note = {rows->integer(0, 2), std::string(rows->text(0, 3))};
  return term;
}

Result<void> Session::send_finish(const LockRef& lock, const NoteChange& change, bool park,
                                  Deadline deadline) {
  Params params;
  add(params, lock);
  params.add(change.ordinal);
  change.text ? params.add(std::string_view(*change.text)) : params.null();
  params.add(park);
  params.add(std::int64_t{timer(kUnused).count()});
  write(change);
  auto sent = connection_->send(kFinish, params, deadline);
  if (!sent) {
    confirm_note(sent.error());
    last_error_ = sent.error().message;
  }
  return sent;
}

Result<void> Session::await_finish(Deadline deadline) {
  const auto done = connection_->collect(deadline);
  // The next question would be given this answer.
  if (!done && done.error().in_doubt) connection_->give_up();
  confirm_note(done);
  if (done) return {};
  last_error_ = done.error().message;
  return done.error();
}

// The server compiles and plans a function when a session first calls it. For a waiter that would
// be when everybody waits for it; so it is done for nothing now, and undone.
Result<void> Session::warm_up(Deadline deadline) {
  if (warm_ || !settings_.timers) return {};
  // A key that is nobody's: the rows of a real one are not to be touched.
  const GrantId grant = new_grant_id();
  const LockRef nothing{.lock_key = static_cast<std::int64_t>(grant.high), .grant = grant};
  const core::Claimant nobody;
  if (auto begun = connection_->script("BEGIN", deadline); !begun) return begun.error();
  const auto taken = take(nothing, nobody, std::nullopt, true, Millis(0), std::nullopt, deadline);
  if (taken) (void)claim(nothing, nobody, std::nullopt, std::nullopt, deadline);
  if (auto undone = connection_->script("ROLLBACK", deadline); !undone) return undone.error();
  warm_ = true;
  return {};
}

Result<void> Session::wait_for(const LockRef& lock, const core::Claimant& claimant,
                               Millis claim_within, Deadline deadline) {
  Params params;
  add(params, lock);
  params.add(number_of(lock.mode));
  params.add(std::string_view(claimant.predicate));
  params.add(std::string_view(claimant.owner));
  if (auto warm = warm_up(deadline); !warm) return warm;
  if (auto queued = connection_->run(kEnqueue, params, deadline); !queued) return queued.error();
  const std::string function =
      lock.mode == Mode::S ? "pg_advisory_lock_shared" : "pg_advisory_lock";
  // One transaction, and over when the lock is there: a waiter that does not come for it in time is
  // idle too long.
  waiting_sql_ = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = " +
                 std::to_string(timer(settings_.longest_wait).count()) +
                 "; SET idle_session_timeout = " + std::to_string(timer(claim_within).count()) +
                 "; SELECT " + function + "(" + std::to_string(lock.lock_key) + ")";
  return connection_->send_script(waiting_sql_);
}

Session::Wait Session::judge_wait(const Result<Rows>& result) {
  if (result) return Wait::got_it;
  last_error_ = result.error().message;
  if (!usable()) return Wait::broken;
  if (connection_->state() == "55P03") return Wait::too_long;
  return Wait::cancelled;
}

Session::Wait Session::poll_wait() {
  const auto result = connection_->collect_now();
  return result ? judge_wait(*result) : Wait::on;
}

Session::Wait Session::finish_wait(Deadline deadline) {
  const auto result = connection_->collect(deadline);
  if (!result && usable() && result.error().in_doubt) return Wait::on;
  return judge_wait(result);
}

void Session::wait_again() { (void)connection_->send_script(waiting_sql_); }

bool Session::listen(std::vector<GrantId>& revoked) {
  if (unanswered_) {
    if (const auto late = connection_->collect_now()) answered(*late);
  }
  std::vector<postgres::Connection::Notification> heard;
  const bool there = connection_->receive(heard);
  for (auto& [channel, payload] : heard) {
    std::erase(payload, '-');
    if (const auto grant = parse_grant_id(payload)) revoked.push_back(*grant);
  }
  return there;
}

}  // namespace baton::store::postgres_advisory
