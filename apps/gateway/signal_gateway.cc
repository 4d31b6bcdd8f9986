#include "apps/gateway/signal_gateway.h"

#include <condition_variable>
#include <mutex>

#include "apps/gateway/alertmanager.h"
#include "apps/gateway/digest.h"
#include "apps/gateway/json.h"
#include "apps/gateway/log.h"

namespace baton::gateway {
namespace {

constexpr int kMaxNames = 20;
constexpr const char* kSignals = "gateway_signals_total";
constexpr const char* kSignalsHelp = "Signals received, by what became of them.";

using Clock = std::chrono::steady_clock;

// The second in the name is for people. Two of one second differ by the number behind it.
std::string request_name(const Signal& signal, Time now, int turn) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::string name =
      "rr-" + digest(signal.fingerprint).substr(0, 12) + "-" + std::to_string(seconds);
  return turn == 1 ? name : name + "-" + std::to_string(turn);
}

}  // namespace

// The waits for locks that are under way.
struct SignalGateway::Waits {
  std::mutex mutex;
  std::condition_variable none;
  std::size_t number = 0;
};

// One of them. It lets go of the gateway before it ends: else the last reference could go on a
// thread of the lock client, when main has returned and the log is gone.
class SignalGateway::Wait {
 public:
  explicit Wait(std::shared_ptr<SignalGateway> gateway)
      : waits_(gateway->waits_), gateway_(std::move(gateway)) {
    const std::lock_guard lock(waits_->mutex);
    ++waits_->number;
  }
  ~Wait() {
    gateway_.reset();
    const std::lock_guard lock(waits_->mutex);
    if (--waits_->number == 0) waits_->none.notify_all();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  [[nodiscard]] const std::shared_ptr<SignalGateway>& gateway() const { return gateway_; }

 private:
  const std::shared_ptr<Waits> waits_;
  std::shared_ptr<SignalGateway> gateway_;
};

// Answers when the last of its alerts has been answered.
class SignalGateway::Notification {
 public:
  Notification(const std::vector<Alert>& alerts, http::Reply reply)
      : reply_(std::move(reply)), left_(alerts.size()) {
    for (const Alert& alert : alerts) answers_.emplace_back(alert.name, http::Response{});
    if (left_ == 0) reply_(notified(answers_));
  }
  void answer(std::size_t alert, http::Response response) {
    {
      const std::lock_guard lock(mutex_);
      answers_[alert].second = std::move(response);
      if (--left_ > 0) return;
    }
    reply_(notified(answers_));
  }

 private:
  const http::Reply reply_;
  std::mutex mutex_;
  std::size_t left_;
  std::vector<std::pair<std::string, http::Response>> answers_;
};

SignalGateway::SignalGateway(LockClient locks, std::shared_ptr<ObjectStore> objects,
                             std::shared_ptr<http::WorkerPool> workers,
                             std::shared_ptr<observe::Metrics> metrics, GatewayOptions options)
    : locks_(std::move(locks)),
      objects_(std::move(objects)),
      workers_(std::move(workers)),
      metrics_(std::move(metrics)),
      options_(std::move(options)),
      lock_metrics_(*metrics_, "gateway"),
      created_(metrics_->counter(kSignals, kSignalsHelp, {{"result", "created"}})),
      duplicates_(metrics_->counter(kSignals, kSignalsHelp, {{"result", "duplicate"}})),
      rejected_(metrics_->counter(kSignals, kSignalsHelp, {{"result", "rejected"}})),
      unavailable_(metrics_->counter(kSignals, kSignalsHelp, {{"result", "unavailable"}})),
      waits_(std::make_shared<Waits>()) {}

void SignalGateway::stop() {
  stop_.request_stop();
  std::unique_lock lock(waits_->mutex);
  waits_->none.wait(lock, [this] { return waits_->number == 0; });
}

void SignalGateway::add_routes(http::Router& router) {
  router.add_async(
      "POST", "/signals",
      [self = shared_from_this()](const http::Request& request, const http::Reply& reply) {
        self->handle(request, reply);
      });
  router.add_async(
      "POST", "/alertmanager",
      [self = shared_from_this()](const http::Request& request, const http::Reply& reply) {
        self->handle_notification(request, reply);
      });
}

http::Response SignalGateway::reject(const Error& error) {
  rejected_.add();
  return http::error_response(400, to_string(error.code), error.message);
}

void SignalGateway::handle(const http::Request& request, const http::Reply& reply) {
  auto signal = parse_signal(request.body);
  if (!signal) return reply(reject(signal.error()));
  handle_signal(std::move(*signal), std::string(request.header("x-correlation-id")), reply);
}

void SignalGateway::handle_notification(const http::Request& request, const http::Reply& reply) {
  auto alerts = parse_notification(request.body);
  if (!alerts) return reply(reject(alerts.error()));
  const std::string correlation_id(request.header("x-correlation-id"));
  const auto notification = std::make_shared<Notification>(*alerts, reply);
  for (std::size_t i = 0; i < alerts->size(); ++i) {
    const http::Reply answer([notification, i](http::Response response) {
      notification->answer(i, std::move(response));
    });
    auto& signal = (*alerts)[i].signal;
    if (signal) {
      handle_signal(std::move(*signal), correlation_id, answer);
    } else {
      answer(reject(signal.error()));
    }
  }
}

void SignalGateway::handle_signal(Signal signal, std::string correlation_id,
                                  const http::Reply& reply) {
  // An active request is as well seen without the lock: only making one needs it. So a storm of
  // reports of the same does not queue up.
  const observe::LogScope scope{{"correlationId", std::move(correlation_id)},
                                {"fingerprint", signal.fingerprint}};
  auto answer = answer_duplicate(signal);
  if (!answer) return reply(no_objects(answer.error()));
  if (*answer) return reply(std::move(**answer));
  lock_and_create(std::move(signal), reply);
}

Result<std::optional<http::Response>> SignalGateway::answer_duplicate(const Signal& signal) {
  auto active = objects_->active_request(signal.fingerprint);
  if (!active) return active.error();
  if (!*active) return std::optional<http::Response>();
  auto count = objects_->count_duplicate((*active)->name, options_.now());
  if (!count) return count.error();
  if (!*count) return std::optional<http::Response>();  // it has just ended
  duplicates_.add();
  return std::optional(duplicate(**active, **count));
}

void SignalGateway::lock_and_create(Signal signal, http::Reply reply) {
  lock_metrics_.attempted();
  const auto asked = Clock::now();
  std::vector<LockName> names = {signal_lock(signal.fingerprint)};
  AcquireOptions how{.ttl = options_.ttl, .wait = options_.wait, .stop = stop_.get_token()};
  how.metadata["alert"] = signal.alert;
  how.metadata["target"] = signal.target.text();
  locks_.acquire_async(
      std::move(names), std::move(how),
      [wait = std::make_shared<Wait>(shared_from_this()), asked, signal = std::move(signal),
       reply = std::move(reply), context = observe::LogScope::current()](Result<Lease> acquired) {
        const observe::LogScope scope(context);
        const auto self = wait->gateway();
        if (!acquired) return reply(self->no_lock(acquired.error()));
        const auto since = Clock::now();
        self->lock_metrics_.acquired(since - asked);
        // This is a thread of the lock client: what blocks goes to the workers.
        self->workers_->post([self, since, signal, reply, context,
                              lease = std::make_shared<Lease>(std::move(*acquired))] {
          const observe::LogScope same_scope(context);
          http::Response response = self->create_locked(signal, *lease);
          (void)lease->release();  // if that fails, it ends by its TTL
          self->lock_metrics_.released(Clock::now() - since);
          reply(std::move(response));
        });
      });
}

http::Response SignalGateway::create_locked(const Signal& signal, const Lease& lease) {
  const Guard guard = guard_of(lease, locks_.owner());
  if (auto ok = objects_->overtake(guard); !ok) return no_objects(ok.error());
  auto answer = answer_duplicate(signal);
  if (!answer) return no_objects(answer.error());
  if (*answer) return std::move(**answer);
  if (!lease.valid()) {
    unavailable_.add();
    return unavailable("the lock of this fingerprint was lost",
                       {.code = Code::lost, .message = lease.why_lost()});
  }
  return create(signal, guard);
}

http::Response SignalGateway::create(const Signal& signal, const Guard& guard) {
  const Time now = options_.now();
  RemediationRequest request{.fingerprint = signal.fingerprint,
                             .target = signal.target,
                             .signal = signal.document,
                             .created = now,
                             .last_seen = now};
  for (int turn = 1; turn <= kMaxNames; ++turn) {
    request.name = request_name(signal, now, turn);
    auto made = objects_->create(request, guard);
    if (!made) return no_objects(made.error());
    if (*made) {
      created_.add();
      log().info("request created", {{"request", request.name}});
      return created(request);
    }
    // Either an older one of this second that has ended, or somebody made one without our lock.
    if (auto answer = answer_duplicate(signal); !answer || *answer) {
      return answer ? std::move(**answer) : no_objects(answer.error());
    }
  }
  return no_objects({.code = Code::unavailable, .message = "no free name in this second"});
}

http::Response SignalGateway::no_lock(const Error& error) {
  lock_metrics_.failed(error);
  unavailable_.add();
  return unavailable("the lock of this fingerprint could not be had", error);
}

http::Response SignalGateway::no_objects(const Error& error) {
  unavailable_.add();
  return unavailable(error.code == Code::fenced ? "the lock of this fingerprint was lost"
                                                : "the store of the requests does not answer",
                     error);
}

}  // namespace baton::gateway
