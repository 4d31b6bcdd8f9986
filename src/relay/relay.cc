#include "baton/relay.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>

#include "baton/elector.h"
#include "baton/partitions.h"
#include "core/bad_request.h"
#include "outbox/clean.h"
#include "relay/runner.h"

namespace baton {
namespace relay {
namespace {

constexpr const char* kModeKey = "relay-mode";  // in the metadata of the members
constexpr Millis kFirstClean{60'000};
constexpr Millis kFirstLookForModes{1'000};
constexpr Millis kLookForModes{30'000};
constexpr Millis kLookLimit{2'000};

std::string mode_name(RelayMode mode) {
  return mode == RelayMode::leader ? "leader" : "partitioned";
}

// FNV-1a, written so that people can compare it.
std::string digest(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(hash >> shift) & 15U];
  return digits;
}

Error no_thread(const std::exception& problem) {
  return {.code = Code::unavailable,
          .message = std::string("no thread could be started: ") + problem.what(),
          .retryable = true};
}

Result<void> check_options(const RelayOptions& options) {
  if (options.max_attempts < 1) return bad_request("an event has at least one attempt");
  if (options.first_delay <= Millis(0)) return bad_request("the first delay must be positive");
  if (options.confirm_within < Millis(1)) return bad_request("confirm_within is at least 1 ms");
  if (options.window_messages < 1) return bad_request("the window has at least one message");
  if (options.ttl <= Millis(0) || options.statement_timeout <= Millis(0) ||
      options.sweep_every <= Millis(0) || options.clean_every <= Millis(0) ||
      options.drain < Millis(0)) {
    return bad_request("times of a relay must be positive");
  }
  if (options.keep != Millis(0) &&
      (options.keep < outbox::kMinRetention || options.keep > outbox::kMaxRetention)) {
    return bad_request("events are kept for 1 hour to 6 days, or with 0 for ever");
  }
  if (options.topology) {
    if (auto ok = check_topology(*options.topology); !ok) return ok;
  }
  if (options.name.empty()) return {};
  if (auto lock = partition_lock("relay/" + options.name, 0, options.region); !lock) {
    return lock.error();
  }
  return {};
}

}  // namespace

Runner::Runner(LockClient locks, std::string outbox_url, std::shared_ptr<Broker> broker,
               RelayOptions options)
    : locks_(std::move(locks)),
      url_(std::move(outbox_url)),
      options_(std::move(options)),
      broker_(std::move(broker)),
      retention_(url_, options_),
      made_(check_options(options_)) {
  if (!made_) return;
  if (!broker_) {
    made_ = bad_request("a relay needs a broker");
    return;
  }
  auto tables = make_lane_tables({.url = url_, .statement_timeout = options_.statement_timeout});
  if (!tables) {
    made_ = tables.error();
    return;
  }
  engine_ = std::make_unique<Engine>(std::move(*tables), broker_, options_);
}

Result<void> Runner::check() const { return made_; }

void Runner::expect_run() {
  const std::lock_guard lock(mutex_);
  running_ = true;
}

void Runner::expect_no_run() {
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  changed_.notify_all();
}

void Runner::wait_until_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
}

void Runner::report(const Error& error) const {
  if (options_.on_error) options_.on_error(error);
}

RelayStats Runner::stats() const {
  RelayStats stats;
  if (engine_) stats = engine_->stats();
  const std::lock_guard lock(mutex_);
  stats.set = set_;
  if (stats.trouble.empty()) stats.trouble = mode_trouble_;
  return stats;
}

Result<void> Runner::run(const std::stop_token& stop) {
  if (!made_) return made_;
  const std::stop_callback on_stop(stop, [this] { stop_.request_stop(); });
  expect_run();
  Result<void> ended = take_part();
  expect_no_run();
  return ended;
}

Result<void> Runner::take_part() {
  std::jthread engine;
  try {
    engine = std::jthread([this](const std::stop_token& stop) { engine_->run(stop); });
  } catch (const std::exception& problem) {
    return no_thread(problem);
  }
  if (options_.name.empty()) engine_->wait_for_identity(stop_.get_token());
  if (stop_.stop_requested()) return {};
  const std::string set = set_name(engine_->identity());
  {
    const std::lock_guard lock(mutex_);
    set_ = set;
  }
  std::jthread upkeep;
  try {
    upkeep = std::jthread([&](const std::stop_token& stop) { look_after(set, stop); });
  } catch (const std::exception& problem) {
    return no_thread(problem);
  }
  return options_.mode == RelayMode::leader ? lead(set) : divide(set, stop_.get_token());
}

std::string Runner::set_name(const std::string& identity) const {
  return "relay/" + (options_.name.empty() ? digest(identity) : options_.name);
}

void Runner::look_after(const std::string& set, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  const bool cleans = options_.keep > Millis(0);
  const Millis soon = std::min(options_.clean_every, kFirstClean);
  Instant clean_at = BootClock::now() + soon;
  Instant look_at = BootClock::now() + kFirstLookForModes;
  while (true) {
    const Instant next = cleans ? std::min(clean_at, look_at) : look_at;
    signal.wait_for(lock, stop, next - BootClock::now(), [] { return false; });
    if (stop.stop_requested()) return;
    if (BootClock::now() >= look_at) {
      look_for_other_modes(set);
      look_at = BootClock::now() + kLookForModes;
    }
    if (!cleans || BootClock::now() < clean_at) continue;
    // A replica that gets lane 0 later finds out soon.
    const bool done = engine_->has_first_lane() && retention_.clean(stop);
    clean_at = BootClock::now() + (done ? options_.clean_every : soon);
  }
}

void Runner::look_for_other_modes(const std::string& set) {
  const auto sets = partition_sets(locks_, set, options_.region, kLookLimit);
  if (!sets) return;  // Partitions tells of a store that cannot be asked
  const std::string mode = mode_name(options_.mode);
  std::string trouble;
  for (const auto& found : *sets) {
    for (const auto& member : found.members) {
      const auto theirs = member.metadata.find(kModeKey);
      if (theirs == member.metadata.end() || theirs->second == mode) continue;
      trouble = "the relay " + member.node + " has the mode " + theirs->second +
                " and this one the mode " + mode + ": start all relays of " + set +
                " in the same mode";
    }
  }
  {
    const std::lock_guard lock(mutex_);
    if (mode_trouble_ == trouble) return;
    mode_trouble_ = trouble;
  }
  if (!trouble.empty()) report({.code = Code::bad_request, .message = trouble});
}

Result<void> Runner::divide(const std::string& set, const std::stop_token& stop) {
  Metadata metadata = options_.metadata;
  metadata.emplace(kModeKey, mode_name(options_.mode));
  Partitions lanes(locks_, set, lane_count(url_),
                   {.ttl = options_.ttl,
                    .region = options_.region,
                    .metadata = std::move(metadata),
                    .on_error = [this](const Error& error) { report(error); }});
  return lanes.run(
      [this](Partition& lane, const std::stop_token& over) { engine_->serve(lane, over); }, stop);
}

// The leader takes part in the same partitions, alone: their locks and their fences are what
// counts.
Result<void> Runner::lead(const std::string& set) {
  Elector elector(locks_, set,
                  {.ttl = options_.ttl,
                   .region = options_.region,
                   .metadata = options_.metadata,
                   .on_error = [this](const Error& error) { report(error); }});
  Result<void> failed;
  auto ended = elector.run(
      [&](Leadership&, const std::stop_token& stop) {
        auto divided = divide(set, stop);
        if (divided) return;
        failed = divided;
        stop_.request_stop();
      },
      stop_.get_token());
  return ended ? failed : ended;
}

}  // namespace relay

Relay::Relay(LockClient locks, std::string outbox_url, std::shared_ptr<Broker> broker,
             RelayOptions options)
    : runner_(std::make_shared<relay::Runner>(std::move(locks), std::move(outbox_url),
                                              std::move(broker), std::move(options))) {}

Relay::~Relay() {
  if (runner_->inherited()) {
    // A forked child: the threads are not here, and what they held is the parent's.
    new auto(std::move(runner_));
    new auto(std::move(thread_));
    return;
  }
  stop();
  if (thread_.joinable()) thread_.join();
}

Result<void> Relay::run(const std::stop_token& stop) {
  const auto runner = runner_;
  return runner->run(stop);
}

Result<void> Relay::start() {
  if (auto ok = runner_->check(); !ok) return ok;
  if (thread_.joinable()) return bad_request("the relay was started before");
  runner_->expect_run();
  try {
    thread_ = std::thread([runner = runner_] {
      if (auto ended = runner->run({}); !ended) runner->report(ended.error());
    });
  } catch (const std::exception& problem) {
    runner_->expect_no_run();
    return relay::no_thread(problem);
  }
  return {};
}

void Relay::stop() {
  runner_->request_stop();
  runner_->wait_until_over();
}

RelayStats Relay::stats() const { return runner_->stats(); }

}  // namespace baton
