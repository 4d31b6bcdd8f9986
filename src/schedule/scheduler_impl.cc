#include "schedule/scheduler_impl.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/bad_request.h"
#include "core/trust.h"
#include "node/wall_time.h"
#include "schedule/hash.h"
#include "schedule/job_queries.h"

namespace baton {

using schedule::Engine;
using schedule::JobSpec;
using schedule::Moment;

namespace {

constexpr std::size_t kFewJobs = 1000;  // in one request
constexpr Millis kClockSet{100};  // the wall clock moved by more than this against the boot clock

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string in_ms(Millis time) { return std::to_string(time.count()) + " ms"; }

}  // namespace

Scheduler::Impl::Impl(LockClient locks, SchedulerOptions options)
    : locks_(std::move(locks)),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      node_(options_.node),
      number_(next_number()) {
  if (!options_.wall_clock) options_.wall_clock = &std::chrono::system_clock::now;
}

void Scheduler::Impl::remember(Error error) {
  const std::lock_guard lock(mutex_);
  if (!first_error_) first_error_ = std::move(error);
}

Result<void> Scheduler::Impl::check(const JobSpec& job) const {
  const JobOptions& options = job.options;
  const std::string who = "job '" + job.name + "': ";
  if (auto ok = validate(schedule::job_name(job.name, options_.region)); !ok) return ok;
  const Millis least = std::max(locks_.capabilities().min_ttl, core::margin(options.lock_ttl) * 2);
  if (options.lock_ttl < least || options.lock_ttl > kMaxTtl) {
    return bad_request(who + "a lock TTL of " + in_ms(options.lock_ttl) +
                       " leaves no time to renew it; it is from " + in_ms(least) + " to 24 h here");
  }
  if (options.try_for < Millis(0) || options.at_least_for < Millis(0) ||
      options.at_least_for > kMaxTtl || options.jitter < Millis(0) || options.backoff < Millis(0) ||
      options.backoff_most < Millis(0) || options.report_after < Millis(0)) {
    return bad_request(who + "a duration is negative, or above 24 h");
  }
  if (options.max_attempts < 0) {
    return bad_request(who + "max_attempts is a number of attempts, or 0 for no limit, not " +
                       std::to_string(options.max_attempts));
  }
  if (options.keep_runs > kMaxKeptRuns) {
    return bad_request(who + "keep_runs is at most " + std::to_string(kMaxKeptRuns) + ", not " +
                       std::to_string(options.keep_runs));
  }
  if (job.schedule.kind() == Schedule::Kind::fixed_rate &&
      options.jitter >= job.schedule.interval()) {
    return bad_request(who + "a jitter of " + in_ms(options.jitter) + " is not below the period");
  }
  return {};
}

Result<std::shared_ptr<const Scheduler::Impl::Job>> Scheduler::Impl::make(std::string name,
                                                                          Schedule when,
                                                                          JobOptions options,
                                                                          Handler handler) const {
  JobSpec spec{.name = std::move(name), .schedule = std::move(when), .options = std::move(options)};
  spec.hash = schedule::stable_hash(spec.name);
  if (auto ok = check(spec); !ok) return ok.error();
  if (!handler) return bad_request("job '" + spec.name + "' has nothing to run");
  return std::make_shared<const Job>(Job{std::move(spec), std::move(handler)});
}

Result<void> Scheduler::Impl::add(std::string name, Schedule when, JobOptions options,
                                  Handler handler) {
  auto made = make(std::move(name), std::move(when), std::move(options), std::move(handler));
  if (!made) return made.error();
  const std::shared_ptr<const Job>& job = *made;
  const std::lock_guard lock(mutex_);
  if (!jobs_.emplace(job->spec.name, job).second) {
    return bad_request("there are two jobs named '" + job->spec.name +
                       "'; a name stands for one job");
  }
  ++version_;
  if (engine_ && takes_part(job->spec)) {
    engine_->add_or_replace(job->spec, moment());
    changed_ = true;
    timer_signal_.notify_one();
  }
  return {};
}

Result<void> Scheduler::Impl::replace(std::string name, Schedule when, JobOptions options,
                                      Handler handler) {
  auto made = make(std::move(name), std::move(when), std::move(options), std::move(handler));
  if (!made) return made.error();
  const std::shared_ptr<const Job>& job = *made;
  const std::lock_guard lock(mutex_);
  const auto it = jobs_.find(job->spec.name);
  if (it == jobs_.end()) return bad_request("there is no job named '" + job->spec.name + "'");
  it->second = job;
  if (!engine_) return {};
  if (takes_part(job->spec)) {
    engine_->add_or_replace(job->spec, moment());
  } else {
    engine_->remove(job->spec.name, moment());
  }
  changed_ = true;
  timer_signal_.notify_one();
  return {};
}

bool Scheduler::Impl::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (jobs_.erase(name) == 0) return false;
  ++version_;
  if (engine_) engine_->remove(name, moment());
  return true;
}

bool Scheduler::Impl::takes_part(const JobSpec& job) const {
  const auto& canary = job.options.nodes;
  return job.options.enabled &&
         (canary.empty() || std::find(canary.begin(), canary.end(), node_->id()) != canary.end());
}

Result<void> Scheduler::Impl::start() {
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    if (first_error_) return *first_error_;
    if (stopping_.stop_requested()) return bad_request("the scheduler has been stopped");
    if (engine_) return bad_request("the scheduler has been started before");
    if (!locks_.capabilities().notes) {
      return Error{.code = Code::unsupported,
                   .message =
                       "this store keeps no notes, by which nodes agree on fires; use "
                       "another one for jobs"};
    }
    if (options_.workers == 0) return bad_request("a scheduler needs at least one worker");
  }
  if (node_ == nullptr) {
    NodeOptions own = options_.own_node;
    own.region = options_.region;
    if (own.clock == nullptr) own.clock = &clock_;
    if (!own.wall_clock) own.wall_clock = options_.wall_clock;
    auto node = Node::join(locks_, std::move(own));
    if (!node) return node.error();
    const std::lock_guard lock(mutex_);
    own_node_.emplace(std::move(*node));
    node_ = &*own_node_;
  }
  const std::lock_guard lock(mutex_);
  schedule::EngineSettings settings{.node = node_->id(),
                                    .role = node_->role(),
                                    .workers = options_.workers,
                                    .rank_step = options_.rank_step,
                                    .poll_every = options_.poll_every};
  if (locks_.capabilities().batched_gets) settings.few_jobs = kFewJobs;
  engine_ = std::make_unique<Engine>(std::move(settings));
  for (const auto& [name, job] : jobs_) {
    if (takes_part(job->spec)) engine_->add(job->spec, moment());
  }
  gathering_ = true;
  timer_ = std::jthread([this](const std::stop_token& stop) { keep_time(stop); });
  looker_ = std::jthread([this](const std::stop_token& stop) { keep_looking(stop); });
  return {};
}

void Scheduler::Impl::keep_time(const std::stop_token& stop) {
  auto offset = moment().wall.time_since_epoch() - moment().now.time_since_epoch();
  while (!stop.stop_requested()) {
    std::vector<schedule::Attempt> start;
    std::vector<Engine::Event> events;
    std::vector<EndedFire> ended;
    {
      std::unique_lock lock(mutex_);
      const Moment now = moment();
      const auto difference = now.wall.time_since_epoch() - now.now.time_since_epoch();
      if (std::chrono::abs(difference - offset) > kClockSet) engine_->rethink(now);
      offset = difference;
      changed_ = false;
      Engine::Tick tick = engine_->tick(now);
      look_ = look_ || tick.look;
      if (tick.look) look_at_ = std::move(tick.at);
      poll_ = poll_ || tick.poll;
      if (tick.look || tick.poll) look_signal_.notify_one();
      start = std::move(tick.start);
      events = engine_->take_events();
      if (!start.empty() || now.now >= release_at_) {
        ended.swap(ended_);
        release_at_ = Instant::max();
      }
      if (start.empty() && events.empty() && ended.empty()) {
        timer_until_ = std::min(tick.next, release_at_);
        while (!changed_ && !stop.stop_requested() && clock_.now() < timer_until_) {
          clock_.wait(lock, timer_signal_, timer_until_);
        }
        timer_until_ = Instant::max();
        continue;
      }
    }
    if (begin_telling()) publish(events);
    const bool alone = start.size() == 1 && ended.empty();
    locks_.ask_together([&] {
      for (auto& attempt : start) ask(std::move(attempt), alone);
      release(std::move(ended));
    });
  }
  std::vector<EndedFire> ended;
  {
    const std::lock_guard lock(mutex_);
    gathering_ = false;
    ended.swap(ended_);
  }
  release(std::move(ended));
}

void Scheduler::Impl::keep_looking(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool jobs = false;
    bool fleet = false;
    std::vector<std::string> few;
    {
      std::unique_lock lock(mutex_);
      look_signal_.wait(lock, [&] { return look_ || poll_ || stop.stop_requested(); });
      jobs = std::exchange(look_, false);
      fleet = std::exchange(poll_, false);
      few = std::move(look_at_);
    }
    if (stop.stop_requested()) return;
    if (jobs) look_at_jobs(few);
    if (fleet) look_at_fleet();
  }
}

schedule::JobListKey Scheduler::Impl::list_key() const {
  return {.region = options_.region, .node = node_->id(), .scheduler = number_};
}

// Before the engine knows of the fleet: no job is registered that no node seems to have.
void Scheduler::Impl::write_jobs() {
  std::vector<std::string> names;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    if (version_ == written_) return;
    version = version_;
    for (const auto& [name, job] : jobs_) names.push_back(name);
  }
  const auto written =
      schedule::write_job_list(locks_, list_key(), node_->started(), std::move(names));
  // The jobs do not depend on it. What may pass is tried again with the next look.
  if (written || !written.error().retryable) written_ = version;
}

void Scheduler::Impl::look_at_fleet() {
  write_jobs();
  auto controls = schedule::find_subject(locks_, kJobControlSubject, options_.region);
  auto nodes = live_nodes(locks_, options_.region);
  tell_engine([&](Engine& engine) {
    if (!controls || !nodes) return engine.poll_failed(moment());
    engine.saw_fleet(*controls, *nodes, moment());
  });
}

void Scheduler::Impl::look_at_jobs(const std::vector<std::string>& few) {
  const Instant began = clock_.now();
  auto found = few.empty() ? schedule::find_subject(locks_, kJobSubject, options_.region)
                           : schedule::get_jobs(locks_, few, options_.region);
  tell_engine([&](Engine& engine) {
    if (!found) return engine.look_failed(moment());
    engine.saw_jobs(*found, began, moment());
  });
}

void Scheduler::Impl::tell_engine(const std::function<void(Engine&)>& change) {
  std::vector<Engine::Event> events;
  {
    const std::lock_guard lock(mutex_);
    change(*engine_);
    events = engine_->take_events();
    if (engine_->next() < timer_until_) {
      changed_ = true;
      timer_signal_.notify_one();
    }
    if (silent_) return;
    ++telling_;  // in the same breath: a run is over for stop() when its listeners know
  }
  publish(events);
}

bool Scheduler::Impl::begin_telling() {
  const std::lock_guard lock(mutex_);
  if (silent_) return false;
  ++telling_;
  return true;
}

void Scheduler::Impl::end_telling() {
  const std::lock_guard lock(mutex_);
  --telling_;
  idle_signal_.notify_all();
}

// The caller has begun to tell.
void Scheduler::Impl::publish(const std::vector<Engine::Event>& events) {
  for (const auto& event : events) {
    for (SchedulerListener* listener : options_.listeners) event(*listener);
  }
  end_telling();
}

void Scheduler::Impl::tell(const Engine::Event& event) {
  if (begin_telling()) publish({event});
}

void Scheduler::Impl::log(LogLevel level, const std::string& job, const std::string& message) {
  tell([&](SchedulerListener& listener) { listener.on_log(level, job, message); });
}

void Scheduler::Impl::stop() {
  stopping_.request_stop();
  const std::lock_guard life(life_);
  for (std::jthread* thread : {&timer_, &looker_}) {
    thread->request_stop();
    {
      const std::lock_guard lock(mutex_);
      timer_signal_.notify_all();
      look_signal_.notify_all();
    }
    if (thread->joinable()) thread->join();
  }
  {
    std::unique_lock lock(mutex_);
    const Instant deadline = clock_.now() + options_.stop_within;
    const auto busy = [&] {
      return engine_ && (engine_->busy() > 0 || running_ > 0 || telling_ > 0);
    };
    while (busy() && clock_.now() < deadline) clock_.wait(lock, idle_signal_, deadline);
    // Handlers that still run tell no listener from now on: listeners may be destroyed when we
    // return.
    silent_ = true;
    idle_signal_.wait(lock, [&] { return telling_ == 0; });
  }
  pool_.close();
  if (std::exchange(written_, 0) > 0) schedule::clear_job_list(locks_, list_key());
  if (own_node_) own_node_->leave();
}

std::string Scheduler::Impl::node_id() const {
  const std::lock_guard lock(mutex_);
  return node_ != nullptr ? node_->id() : std::string();
}

std::size_t Scheduler::Impl::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace baton
