#include "apps/documents/common/service.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "apps/common/ending_signals.h"
#include "apps/common/start.h"
#include "apps/documents/common/api_document.h"
#include "apps/documents/common/problem.h"
#include "apps/documents/common/service_log.h"
#include "apps/documents/common/topology.h"
#include "baton/broker.h"
#include "baton/event.h"
#include "baton/fence.h"
#include "baton/inbox.h"
#include "baton/lock_metrics.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "baton/store_admin.h"
#include "http/server.h"
#include "sql/schema.h"

namespace baton::documents {
namespace {

constexpr std::size_t kConnections = 8;
constexpr std::size_t kWorkers = 8;
constexpr std::size_t kMaxBody = 2U << 20U;  // 256 KiB of content, with every byte escaped
constexpr Millis kIdleInTransaction{15'000};
constexpr Millis kHousekeeping{2'000};
constexpr Millis kOpenFor{30'000};
constexpr const char* kCorrelationId = "x-correlation-id";

bool is_postgres(const std::string& url) { return url.starts_with("postgres"); }

// As the lock client calls itself.
std::string node_of(const Settings& settings) {
  if (!settings.instance.empty()) return settings.instance;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

// Beside the file of an SQLite database, else in the database.
std::string locks_of(const Settings& settings) {
  if (!settings.locks.empty()) return settings.locks;
  return is_postgres(settings.database) ? settings.database : settings.database + "-locks";
}

// The servers of a platform start in any order.
template <typename Try>
auto patiently(Try attempt) -> decltype(attempt()) {
  const Deadline until = BootClock::now() + kOpenFor;
  for (;;) {
    auto result = attempt();
    if (result || !result.error().retryable || BootClock::now() > until) return result;
    std::this_thread::sleep_for(Millis(200));
  }
}

Result<LockClient> open_locks(const Settings& settings,
                              const std::shared_ptr<observe::Metrics>& metrics) {
  const std::string url = locks_of(settings);
  if (is_postgres(url)) {
    auto admin = open_admin(url, BootClock::now() + kOpenFor);
    if (!admin) return admin.error();
    auto migrated = (*admin)->migrate(BootClock::now() + kOpenFor);
    if (!migrated) return migrated.error();
  }
  return open(url, {.owner = settings.instance,
                    .observer = std::make_shared<observe::LockMetrics>(metrics)});
}

// "pid URL" for the process that has started us. Written aside and renamed, so that nobody reads
// half of it.
Result<void> write_run_file(const std::string& path, const std::string& url) {
  if (path.empty()) return {};
  const std::string text = std::to_string(getpid()) + " " + url + "\n";
  const std::string aside = path + ".new";
  const int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  if (written && ::rename(aside.c_str(), path.c_str()) == 0) return {};
  return Error{.code = Code::bad_request, .message = "cannot write " + path};
}

// "127.0.0.1:8080" or "[::1]:8080", checked when it was read.
std::pair<std::string, std::uint16_t> address_and_port(const std::string& listen) {
  const auto colon = listen.rfind(':');
  std::string address = listen.substr(0, colon);
  if (address.starts_with('[')) address = address.substr(1, address.size() - 2);
  return {address, static_cast<std::uint16_t>(std::stoi(listen.substr(colon + 1)))};
}

// A header that is there twice says nothing.
http::Request with_correlation_id(http::Request request) {
  std::string given;
  std::size_t times = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == kCorrelationId && ++times == 1) given = value;
  }
  std::erase_if(request.headers, [](const auto& one) { return one.first == kCorrelationId; });
  request.headers.emplace_back(kCorrelationId, usable_context_id(times == 1 ? given : ""));
  return request;
}

// In the order in which they are made; destroyed from the end.
class RunningService {
 public:
  RunningService(const Settings& settings, MakeService make)
      : settings_(settings),
        log_({.service = settings.service + "-service",
              .node = node_of(settings),
              .format = settings.log_format,
              .level = settings.log_level}),
        database_(settings.database,
                  {.name = settings.service,
                   .application = "documents-" + settings.service,
                   .idle_in_transaction_timeout = kIdleInTransaction},
                  kConnections),
        spec_(make({settings_, database_, log_, *metrics_})),
        told_(log_, settings.service, metrics_) {}

  Result<void> start() {
    if (auto ready = prepare_database(); !ready) return ready;
    auto broker = Broker::open(settings_.broker);
    if (!broker) return broker.error();
    broker_ = std::move(*broker);
    if (spec_.publishes || spec_.leader_work) {
      auto locks = patiently([&] { return open_locks(settings_, metrics_); });
      if (!locks) return locks.error();
      locks_ = std::move(*locks);
    }
    if (spec_.publishes) start_relay();
    if (spec_.leader_work) start_elector();
    if (!spec_.queue.empty()) start_consumer();
    if (auto serving = start_server(); !serving) return serving;
    housekeeper_ = std::jthread([this](const std::stop_token& stop) { keep_house(stop); });
    log_.named("documents")
        .info("SERVICE_STARTED", {{"url", server_->url()}, {"broker", broker_->describe()}});
    return write_run_file(settings_.run_file, server_->url());
  }

  Result<void> stop() {
    log_.named("documents").info("SERVICE_STOPPING");
    server_->stop(settings_.grace);
    workers_->stop();
    housekeeper_ = {};
    if (elector_) {
      leading_.request_stop();
      elector_thread_.join();
    }
    if (consumer_) {
      consumer_thread_.request_stop();
      consumer_thread_.join();
    }
    if (relay_) relay_->stop();
    log_.named("documents").info("SERVICE_STOPPED");
    return consumer_ended_;
  }

 private:
  Result<void> prepare_database() {
    return patiently([&]() -> Result<void> {
      auto session = database_.take();
      if (!session) return session.error();
      return install_tables(**session, settings_.service, spec_);
    });
  }

  void start_relay() {
    relay_ = std::make_unique<Relay>(
        *locks_, settings_.database, broker_,
        RelayOptions{.name = settings_.service,
                     .ttl = settings_.lock_ttl,
                     .topology = documents_topology(),
                     .on_error = [this](const Error& error) { told_.tell_relay(error); },
                     .on_event = [this](const RelayEvent& event) { told_.tell(event); }});
    (void)relay_->start();
  }

  void start_elector() {
    elector_ = std::make_unique<Elector>(
        *locks_, settings_.service,
        ElectorOptions{.ttl = settings_.lock_ttl,
                       .grace = settings_.grace,
                       .fence_first = [this](auto tokens) { return raise_fence(tokens); },
                       .on_error = [this](const Error& error) { told_.tell(error); }});
    elector_thread_ = std::jthread([this] {
      auto ended = elector_->run(spec_.leader_work, leading_.get_token());
      if (!ended) told_.tell(ended.error());
    });
  }

  Result<void> raise_fence(std::span<const FenceToken> tokens) {
    auto session = database_.take();
    if (!session) return session.error();
    auto& connection = **session;
    return connection.postgres() != nullptr ? fence_alone(connection.postgres(), tokens)
                                            : fence_alone(connection.sqlite(), tokens);
  }

  void start_consumer() {
    ConsumerOptions options{.name = settings_.service,
                            .queue = spec_.queue,
                            .topology = documents_topology(),
                            .handler_timeout = settings_.handler_timeout,
                            .outbox = {.exchange = std::string(kExchange), .prepared = true},
                            .before_commit = spec_.before_commit,
                            .on_note = [this](const ConsumerNote& note) { told_.tell(note); }};
    if (!spec_.needs_others) options.breaker_after = 0;
    if (!settings_.retry_delays.empty()) options.retry_delays = settings_.retry_delays;
    if (spec_.give_up) {
      options.on_give_up = [this](Handling& handling) {
        observe::LogFields unused;
        Work work(handling, unused, false);
        spec_.give_up(work);
      };
    }
    consumer_ = std::make_unique<Consumer>(
        broker_, settings_.database, std::move(options), [this](Handling& handling) {
          return told_.handle(handling, [&](observe::LogFields& fields) {
            Work work(handling, fields, settings_.allow_simulation);
            return spec_.handle(work);
          });
        });
    consumer_thread_ = std::jthread([this](const std::stop_token& stop) {
      consumer_ended_ = consumer_->run(stop);
      if (stop.stop_requested()) return;
      // A service that handles nothing any more must not look alive: its supervisor starts
      // it again.
      if (!consumer_ended_) told_.tell(consumer_ended_.error());
      (void)::kill(::getpid(), SIGTERM);
    });
  }

  Result<void> start_server() {
    const auto [address, port] = address_and_port(settings_.listen);
    health_ = std::make_unique<Health>(settings_, database_, *broker_, relay_.get(), spec_.queue);
    workers_ = std::make_shared<http::WorkerPool>(kWorkers);
    auto server = http::Server::start(
        make_router(spec_, {settings_, database_, log_, *metrics_}, *health_),
        {.address = address,
         .port = port,
         .max_body_bytes = kMaxBody,
         .on_served = [this](const http::Served& served) { told_.tell(served); },
         .refusal = refusal},
        workers_);
    if (!server) {
      Error error = server.error();
      error.message += "; choose another with --listen IP:PORT";
      return error;
    }
    server_ = std::move(*server);
    return {};
  }

  void keep_house(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any signal;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      try {
        if (relay_) told_.show(relay_->stats());
        if (spec_.housekeeping) {
          const auto session = need(database_.take());
          spec_.housekeeping(Tx(*session));
        }
      } catch (const SqlError& problem) {
        told_.tell(problem.error);
      }
      signal.wait_for(lock, stop, kHousekeeping, [] { return false; });
    }
  }

  const Settings& settings_;
  observe::Log log_;
  const std::shared_ptr<observe::Metrics> metrics_ = std::make_shared<observe::Metrics>();
  sql::Pool database_;
  const ServiceSpec spec_;
  ServiceLog told_;
  std::shared_ptr<Broker> broker_;
  std::optional<LockClient> locks_;
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<Elector> elector_;
  std::stop_source leading_;
  std::jthread elector_thread_;
  std::unique_ptr<Consumer> consumer_;
  Result<void> consumer_ended_;
  std::jthread consumer_thread_;
  std::unique_ptr<Health> health_;
  std::shared_ptr<http::WorkerPool> workers_;
  std::unique_ptr<http::Server> server_;
  std::jthread housekeeper_;
};

}  // namespace

Result<void> install_tables(sql::Connection& database, const std::string& service,
                            const ServiceSpec& spec) {
  const bool postgres = database.kind() == sql::Kind::postgres;
  const std::string command = "documents " + service;
  const std::string version_table = (postgres ? "$schema." : "") + service + "_version";
  const std::string version = "CREATE TABLE " + version_table +
                              " (version integer NOT NULL); INSERT INTO " + version_table +
                              " VALUES (" + std::to_string(spec.version) + ")";
  const sql::Schema schema{
      .name = service,
      .version = spec.version,
      .install_command = command,
      .scripts = {version, postgres ? spec.postgres_tables : spec.sqlite_tables}};
  const auto all = [&](auto* session) -> Result<void> {
    if (auto made = sql::install(session, schema); !made) return made;
    if (spec.publishes) {
      if (auto made = install_outbox(session); !made) return made;
    }
    if (spec.leader_work) {
      if (auto made = install_fence(session); !made) return made;
    }
    return spec.queue.empty() ? Result<void>() : install_inbox(session);
  };
  return postgres ? all(database.postgres()) : all(database.sqlite());
}

http::Router::Handler with_database(sql::Pool& database, DatabaseHandler handler,
                                    observe::Logger log) {
  return [&database, handler = std::move(handler),
          log = std::move(log)](const http::Request& asked) {
    const http::Request request = with_correlation_id(asked);
    const std::string id(request.header(kCorrelationId));
    const observe::LogScope scope{{"correlationId", id}};
    const auto failed = [&](int status, const char* detail, const std::string& reason) {
      log.error("TECHNICAL_FAILURE", {{"reason", reason}, {"route", request.route}});
      return problem(status, detail);
    };
    http::Response answer;
    try {
      const auto session = need(database.take());
      answer = handler(*session, request);
    } catch (const SqlError& problem) {
      const bool later = problem.error.retryable || problem.error.code == Code::unavailable;
      answer = later ? failed(503, "the database does not answer; try again", problem.error.message)
                     : failed(500, "the request could not be handled", problem.error.message);
      if (later) answer.headers.emplace_back("Retry-After", "1");
    } catch (const std::exception& problem) {
      answer = failed(500, "the request could not be handled", problem.what());
    }
    if (http::find(answer.headers, "X-Correlation-Id") == nullptr) {
      answer.headers.emplace_back("X-Correlation-Id", id);
    }
    return answer;
  };
}

http::Router make_router(const ServiceSpec& spec, const ServiceContext& context, Health& health) {
  http::Router router;
  health.add_routes(router, context.metrics);
  router.add(
      "GET", "/openapi.json",
      [api = api_document(context.settings.service, spec.api)](const http::Request&) {
        return http::Response{.body = api};
      },
      http::Router::Run::at_once);
  if (spec.add_routes) spec.add_routes(router);
  return router;
}

Result<int> run_service(MakeService make, const Settings& settings) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  apps::EndingSignals signals;
  RunningService service(settings, make);
  if (auto started = service.start(); !started) return started.error();
  signals.wait();
  if (auto stopped = service.stop(); !stopped) return stopped.error();
  return apps::kOk;
}

}  // namespace baton::documents
