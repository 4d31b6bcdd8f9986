#include "inbox/consumer_loop.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "core/bad_request.h"
#include "inbox/inbox_table.h"
#include "inbox/operate.h"
#include "inbox/session.h"

namespace baton::inbox {
namespace {

constexpr Millis kMinNap{100};
constexpr Millis kMaxNap{1'000};
constexpr Millis kBrokerCall{10'000};
constexpr Millis kRetentionInterval{60'000};
constexpr Millis kDeadLetterInterval{1'000};
constexpr Millis kCountInterval{5'000};
constexpr std::size_t kDeadLettersAtOnce = 100;
constexpr std::int64_t kForgottenAtOnce = 1'000;
constexpr int kRetriesAtOnce = 32;
constexpr int kMaxAbandoned = 8;
// Unsettled deliveries of each lane of an ordered consumer. All its replicas must have the same
// number: RabbitMQ puts returned messages behind those that were returned before, which is the
// order of delivery only if all consumers have the same prefetch.
constexpr std::size_t kLanePrefetch = 8;
// How long a claimed retry is left alone, on top of the time of its handler; no longer than that.
constexpr Millis kMaxClaimMargin{10'000};
// EX_SOFTWARE of sysexits.h
constexpr int kOverrunExit = 70;

sql::Kind kind_of(const std::string& url) {
  return url.starts_with("sqlite:") ? sql::Kind::sqlite : sql::Kind::postgres;
}

std::shared_ptr<Handlers> make_handlers(const std::string& url, const ConsumerOptions& options,
                                        Consumer::Handler handler) {
  return std::make_shared<Handlers>(Handlers{
      .handler = std::move(handler),
      .on_give_up = options.on_give_up,
      .before_commit = options.before_commit,
      .timeout = options.handler_timeout,
      .max_version = options.max_version,
      .outbox = Outbox(options.outbox),
      .limits = {.max_retries = options.max_retries,
                 .delays = options.retry_delays,
                 .claim_lead =
                     options.handler_timeout + std::min(options.handler_timeout, kMaxClaimMargin),
                 .breaker_patience = options.breaker_patience},
      .tables =
          Tables(kind_of(url), options.name, options.queue, options.ordered, options.time_shift)});
}

}  // namespace

ConsumerLoop::ConsumerLoop(std::shared_ptr<Broker> broker, std::string database_url,
                           ConsumerOptions options, Consumer::Handler handler)
    : broker_(std::move(broker)),
      database_url_(std::move(database_url)),
      options_(std::move(options)),
      handlers_(make_handlers(database_url_, options_, std::move(handler))),
      breaker_(std::max(options_.breaker_after, 0)) {}

Result<void> ConsumerLoop::check_options() const {
  if (broker_ == nullptr || !handlers_->handler) return bad_request("no broker or no handler");
  if (options_.name.empty() || options_.name.size() > kMaxEventText ||
      printable(options_.name, kMaxEventText) != options_.name) {
    return bad_request("a consumer has a name of 1 to 255 bytes without control characters");
  }
  if (options_.queue.empty()) return bad_request("a consumer needs the name of its queue");
  if (!options_.bind.empty() && options_.exchange.empty()) {
    return bad_request("to bind the queue " + options_.queue + ", name the exchange");
  }
  if (options_.batch < 1 || options_.batch > 1'000 || options_.prefetch < 1) {
    return bad_request("batch is 1 to 1000, and prefetch at least 1");
  }
  if (options_.max_retries < 0 || options_.handler_timeout <= Millis{0} ||
      options_.poll_interval <= Millis{0} || options_.breaker_patience < Millis{0}) {
    return bad_request(
        "max_retries, handler_timeout, poll_interval or breaker_patience is out of range");
  }
  if (options_.deduplication_window < std::chrono::hours{1}) {
    return bad_request("a deduplication window under an hour would let duplicates through");
  }
  return {};
}

Result<void> ConsumerLoop::declare() {
  Topology all = options_.topology;
  if (!options_.bind.empty()) {
    const auto has = [](const auto& list, const std::string& name) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& one) { return one.name == name; });
    };
    if (!has(all.exchanges, options_.exchange)) all.exchanges.push_back({options_.exchange});
    const std::string lanes = options_.queue + ".lanes";
    const bool divided = options_.ordered && has(all.exchanges, lanes);
    if (!divided && !has(all.queues, options_.queue)) all.queues.push_back({options_.queue});
    for (const auto& pattern : options_.bind) {
      const Topology::Binding binding =
          divided ? Topology::Binding{options_.exchange, pattern, {}, lanes}
                  : Topology::Binding{options_.exchange, pattern, options_.queue, {}};
      if (std::find(all.bindings.begin(), all.bindings.end(), binding) == all.bindings.end()) {
        all.bindings.push_back(binding);
      }
    }
  }
  if (options_.ordered) all = with_lanes(std::move(all), options_.queue);
  if (all == Topology{}) return {};
  return broker_->declare(all, BootClock::now() + kBrokerCall);
}

// The queues that its events come from.
std::vector<std::string> ConsumerLoop::queues(const std::string& suffix) const {
  if (!options_.ordered) return {options_.queue + suffix};
  std::vector<std::string> all;
  for (int lane = 0; lane < kLanes; ++lane)
    all.push_back(lane_queue(options_.queue, lane) + suffix);
  return all;
}

Result<void> ConsumerLoop::run(std::stop_token stop) {
  if (auto ok = check_options(); !ok) return ok;
  stop_ = std::move(stop);
  failure_.reset();
  while (!stopping() && !failure_) {
    try {
      pass();
    } catch (const std::exception& problem) {  // no thread, no memory
      drop_subscription();                     // so that what was in hand comes again
      pause(problem.what());
    }
  }
  settle();
  // Deliveries that were not begun go back to the queue, for other consumers. Those of an ordered
  // consumer go back when the subscription ends, in one order with those that it has not taken.
  if (!options_.ordered) {
    for (const Delivery& delivery : in_hand_) {
      to_acknowledge_.push_back({delivery.tag, Settle::requeue});
    }
    settle();
  }
  in_hand_.clear();
  subscription_.reset();
  dead_letters_.reset();
  database_.reset();
  if (failure_) return *failure_;
  return {};
}

void ConsumerLoop::pass() {
  if (!connect_database() || !subscribe()) return;
  // Messages that the broker gave up on while no consumer could work are older than those in its
  // queue.
  if (options_.ordered && std::exchange(is_new_, false)) {
    while (move_dead_letters(options_.poll_interval) && !stopping()) {
    }
    if (database_ == nullptr || stopping()) return;
  }
  if (breaker_.open()) {
    probe();
  } else {
    take(options_.batch);
    process();
    for (int i = 0; i < kRetriesAtOnce && !stopping() && !breaker_.open(); ++i) {
      if (!retry_due(false)) break;
    }
  }
  conflicts_ = 0;
  keep_house();
}

// One at a time.
void ConsumerLoop::probe() {
  nap(options_.breaker_pause);
  if (stopping()) return;
  for (int i = 0; i < 2; ++i) {  // if there is none of one kind, the other
    if (breaker_.next_probe() == Breaker::Probe::retry) {
      if (retry_due(true)) return;
    } else {
      if (in_hand_.empty()) take(1);
      if (in_hand_.empty()) continue;
      Delivery one = std::move(in_hand_.front());
      in_hand_.pop_front();
      std::deque<Delivery> later;
      later.swap(in_hand_);
      in_hand_.push_back(std::move(one));
      process();
      in_hand_.insert(in_hand_.end(), std::make_move_iterator(later.begin()),
                      std::make_move_iterator(later.end()));
      return;
    }
  }
}

void ConsumerLoop::nap(Millis time) {
  std::mutex nobody_elses;
  std::unique_lock lock(nobody_elses);
  std::condition_variable_any().wait_for(lock, stop_, time, [] { return false; });
}

void ConsumerLoop::pause(const std::string& why) {
  if (!paused_) note(ConsumerNote::Kind::paused, "CONSUMER_PAUSED", nullptr, 0, why);
  paused_ = true;
  database_.reset();  // its state is unknown
  database_nap_ = std::clamp(database_nap_ * 2, kMinNap, kMaxNap);
  nap(database_nap_);
}

// What only a person can mend is told also in a pause that began with something else.
void ConsumerLoop::wait_for_repair(const std::string& why) {
  if (paused_ && needs_ != why) {
    note(ConsumerNote::Kind::paused, "CONSUMER_PAUSED", nullptr, 0, why);
  }
  needs_ = why;
  pause(why);
}

bool ConsumerLoop::connect_database() {
  // Deliveries in hand are finished even after a stop, on the connection that is open.
  if (database_ != nullptr && database_->usable() && database_->idle()) return true;
  while (!stopping()) {
    database_.reset();
    sql::Options options{.name = "the inbox of " + options_.name,
                         .application = "baton consumer " + options_.name,
                         .create = false,
                         .lent = true,
                         .idle_in_transaction_timeout = options_.handler_timeout + Millis{5'000}};
    auto opened = sql::Connection::open(database_url_, options);
    if (!opened) {
      ++refusals_;
      if (opened.error().retryable) {
        pause(opened.error().message);
        continue;
      }
      if (!paused_) {
        failure_ = opened.error();
        return false;
      }
      wait_for_repair(opened.error().message);
      continue;
    }
    std::shared_ptr<sql::Connection> database(std::move(*opened));
    if (auto there = handlers_->tables.check(*database); !there) {
      ++refusals_;
      if (there.error().code != Code::bad_store) {
        pause(there.error().message);
        continue;
      }
      if (!paused_) {
        failure_ = there.error();
        return false;
      }
      wait_for_repair(there.error().message);
      continue;
    }
    prepare_for_handlers(*database);
    database_ = std::move(database);
    needs_.clear();
    if (std::exchange(paused_, false)) note(ConsumerNote::Kind::resumed, "CONSUMER_RESUMED");
    return true;
  }
  return false;
}

bool ConsumerLoop::subscribe() {
  while (!stopping() && subscription_ == nullptr) {
    in_hand_.clear();  // the broker delivers it again
    to_acknowledge_.clear();
    auto made = declare();
    if (made) {
      auto opened = broker_->subscribe(
          queues(), {.prefetch = options_.ordered ? kLanePrefetch : options_.prefetch},
          BootClock::now() + kBrokerCall);
      if (opened) {
        subscription_ = std::move(*opened);
        is_new_ = true;
        broker_nap_ = Millis{0};
        broker_lost_ = false;
        return true;
      }
      made = opened.error();
    }
    if (!made.error().retryable && !made.error().in_doubt && !broker_lost_) {
      failure_ = made.error();
      return false;
    }
    if (!broker_lost_) {
      note(ConsumerNote::Kind::broker_lost, "BROKER_LOST", nullptr, 0, made.error().message);
    }
    broker_lost_ = true;
    broker_nap_ = std::clamp(broker_nap_ * 2, kMinNap, kMaxNap);
    nap(broker_nap_);
  }
  return subscription_ != nullptr;
}

void ConsumerLoop::drop_subscription() {
  subscription_.reset();
  in_hand_.clear();
  to_acknowledge_.clear();
}

void ConsumerLoop::take(std::size_t most) {
  if (in_hand_.size() >= most) return;
  auto deliveries = subscription_->take(
      most - in_hand_.size(),
      BootClock::now() + (in_hand_.empty() ? options_.poll_interval : Millis{0}));
  if (!deliveries) {
    note(ConsumerNote::Kind::broker_lost, "BROKER_LOST", nullptr, 0, deliveries.error().message);
    broker_lost_ = true;
    drop_subscription();
    return;
  }
  for (auto& delivery : *deliveries) in_hand_.push_back(std::move(delivery));
}

void ConsumerLoop::settle() {
  if (to_acknowledge_.empty() || subscription_ == nullptr) return;
  const auto settlements = std::exchange(to_acknowledge_, {});
  auto settled = subscription_->settle(settlements, BootClock::now() + kBrokerCall);
  if (settled) return;
  // They come again, and the ledger knows them.
  note(ConsumerNote::Kind::broker_lost, "BROKER_LOST", nullptr, 0, settled.error().message);
  broker_lost_ = true;
  subscription_.reset();
  in_hand_.clear();
}

bool ConsumerLoop::run_job(const std::shared_ptr<Attempt>& attempt,
                           const std::function<void()>& job) {
  bool overran = false;
  const int socket = socket_of(*database_);
  const auto overrun = [&] {
    overran = true;
    if (socket >= 0) {
      (void)::shutdown(socket, SHUT_RDWR);
      return;
    }
    std::fprintf(stderr,
                 "baton: a handler of %s took longer than %lld ms and keeps the database locked; "
                 "the process ends\n",
                 options_.name.c_str(), static_cast<long long>(options_.handler_timeout.count()));
    ::_exit(kOverrunExit);
  };
  // The job keeps what it uses, also if it never returns.
  const auto guarded = [attempt, job] {
    try {
      job();
    } catch (const std::exception& problem) {  // out of memory, for one; rolled back
      attempt->broke(problem.what());
    }
  };
  const bool returned = handler_thread_.run(guarded, attempt->limit(), overrun);
  if (overran) database_.reset();
  if (!returned && ++abandoned_ >= kMaxAbandoned) {
    failure_ = Error{.code = Code::unavailable,
                     .message = std::to_string(abandoned_) +
                                " handlers have not returned: this process must be restarted"};
  }
  return !overran;
}

void ConsumerLoop::keep_house() {
  if (database_ == nullptr || stopping()) return;
  const Instant now = BootClock::now();
  if (now >= next_dead_letters_) {
    next_dead_letters_ = now + kDeadLetterInterval;
    (void)move_dead_letters(Millis{0});
  }
  if (database_ != nullptr && now >= next_retention_) {
    auto forgotten = handlers_->tables.forget_old(
        *database_, std::chrono::duration_cast<Millis>(options_.deduplication_window),
        kForgottenAtOnce);
    if (!forgotten && !database_->usable()) return pause(forgotten.error().message);
    // As long as there is more, it goes on between the batches.
    if (!forgotten || *forgotten < kForgottenAtOnce) next_retention_ = now + kRetentionInterval;
  }
  if (database_ != nullptr && options_.on_note && now >= next_count_) {
    next_count_ = now + kCountInterval;
    count_inbox();
  }
}

void ConsumerLoop::count_inbox() {
  const auto health = read_health(*database_, options_.name);
  if (!health && !database_->usable()) return pause(health.error().message);
  if (!health) return;  // the next pass finds out why
  ConsumerNote counted{.kind = ConsumerNote::Kind::counted, .message = "INBOX_COUNTED"};
  for (const auto& part : *health) {
    if (part.status == status::retry) counted.counts.retry = part.pile.count;
    if (part.status == status::held) counted.counts.held = part.pile.count;
    if (part.status == status::dead) counted.counts.dead = part.pile.count;
  }
  tell_user(counted);
}

// Moves messages that the broker itself gave up on into inbox_events. True if there were some, and
// there may be more.
bool ConsumerLoop::move_dead_letters(Millis wait) {
  const auto drop = [&] {
    dead_letters_.reset();
    next_dead_letters_ = BootClock::now() + 10 * kDeadLetterInterval;
    return false;
  };
  if (dead_letters_ == nullptr) {
    auto opened = broker_->subscribe(queues(".dlq"), {.prefetch = kDeadLettersAtOnce},
                                     BootClock::now() + kBrokerCall);
    if (!opened) return drop();  // a queue without dead letters has none
    dead_letters_ = std::move(*opened);
  }
  auto letters = dead_letters_->take(kDeadLettersAtOnce, BootClock::now() + wait);
  if (!letters) return drop();
  std::vector<Settlement> moved;
  for (const Delivery& letter : *letters) {
    const auto sent = event::from_message(letter.message);
    const auto kept =
        sent ? keep_new(keep(*sent, letter.message), keep_first, "the broker gave up on it")
             : keep_new(
                   keep_poison(letter.message),
                   [](Ledger ledger, Aggregate) { return bury(ledger); }, sent.error().message);
    if (!kept) return drop();
    moved.push_back({letter.tag, Settle::ack});
    if (*kept != Stored::known) {
      note(sent ? ConsumerNote::Kind::kept : ConsumerNote::Kind::poison, "DEAD_LETTER_MOVED",
           sent ? &sent->event : nullptr);
    }
  }
  if (moved.empty()) return false;
  if (!dead_letters_->settle(moved, BootClock::now() + kBrokerCall)) return drop();
  return true;
}

void ConsumerLoop::note(ConsumerNote::Kind kind, std::string_view message, const Event* event,
                        int attempt, const std::string& reason,
                        std::chrono::sys_time<Millis> occurred_at) const {
  tell_user({.kind = kind,
             .message = message,
             .event = event,
             .attempt = attempt,
             .reason = reason,
             .occurred_at = occurred_at});
}

// An exception of the callback must not decide about events.
void ConsumerLoop::tell_user(const ConsumerNote& note) const {
  if (!options_.on_note) return;
  try {
    options_.on_note(note);
  } catch (...) {
    std::fprintf(stderr, "baton: on_note of the consumer %s has thrown\n", options_.name.c_str());
  }
}

}  // namespace baton::inbox
