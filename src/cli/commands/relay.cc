// baton relay: the relay of an outbox as a daemon.

#include "baton/relay.h"

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stop_token>
#include <thread>

#include "baton/broker.h"
#include "baton/metrics_server.h"
#include "baton/outbox_metrics.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/event_view.h"
#include "cli/file.h"
#include "cli/open_client.h"
#include "cli/signals.h"
#include "cli/store_wait.h"
#include "observe/event_logging.h"
#include "observe/log.h"

namespace baton::cli {
namespace {

constexpr std::size_t kMaxTopologyFile = 1 << 20;

Result<RelayOptions> options_of(const RelayArguments& arguments, const Settings& settings) {
  RelayOptions options{.name = arguments.name, .max_attempts = arguments.max_attempts};
  auto ttl = parse_duration_argument("--ttl", arguments.ttl, Millis(1), kMaxTtl);
  if (!ttl) return ttl.error();
  options.ttl = *ttl;
  auto delay = parse_duration_argument("--first-delay", arguments.first_delay, Millis(1), kMaxTtl);
  if (!delay) return delay.error();
  options.first_delay = *delay;
  if (arguments.keep == "0") {
    options.keep = Millis(0);
  } else {
    auto keep = parse_age("--keep", arguments.keep);
    if (!keep) return keep.error();
    options.keep = *keep;
  }
  if (arguments.mode == "leader") {
    options.mode = RelayMode::leader;
  } else if (arguments.mode != "partitioned") {
    return bad_request("--mode is partitioned or leader, not " + arguments.mode);
  }
  if (arguments.on_failed == "skip") {
    options.on_failed = RelayOnFailed::skip;
  } else if (arguments.on_failed != "hold") {
    return bad_request("--on-failed is hold or skip, not " + arguments.on_failed);
  }
  if (!arguments.topology.empty()) {
    auto text = read_file(arguments.topology, kMaxTopologyFile);
    if (!text) return text.error();
    auto topology = parse_topology(*text);
    if (!topology) return bad_request(arguments.topology + ": " + topology.error().message);
    options.topology = std::move(*topology);
  }
  if (!settings.region.empty()) options.region = settings.region;
  return options;
}

// Until `stop`, once a second.
template <typename Body>
void every_second(const std::stop_token& stop, Body body) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    body();
    signal.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
  }
}

}  // namespace

Result<int> relay(Context& context, const RelayArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto options = options_of(arguments, *settings);
  if (!options) return options.error();
  const auto format = observe::parse_log_format(arguments.log_format);
  if (!format) return bad_request("--log-format is json or text, not " + arguments.log_format);
  const auto level = observe::parse_log_level(arguments.log_level);
  if (!level) {
    return bad_request("--log-level is debug, info, warn or error, not " + arguments.log_level);
  }
  auto url = broker_url(arguments.broker);
  if (!url) return url.error();
  auto broker = Broker::open(*url);
  if (!broker) return broker.error();

  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  const Signals signals;
  StopOnSignal ending(signals);
  std::shared_ptr<observe::MetricsServer> server;
  std::unique_ptr<observe::OutboxMetrics> counting;
  const auto metrics = std::make_shared<observe::Metrics>();
  if (!arguments.metrics.empty()) {
    auto started = observe::MetricsServer::start(arguments.metrics, metrics);
    if (!started) return started.error();
    server = std::move(*started);
    counting = std::make_unique<observe::OutboxMetrics>(
        metrics, arguments.name.empty() ? "default" : arguments.name);
  }
  auto opened = open_client(*settings, "", context.out, StoreWait(context.out, std::nullopt));
  if (!opened) return opened.error();
  ending.ask_politely();

  observe::Log out(
      {.service = "relay", .node = opened->locks.owner(), .format = *format, .level = *level});
  const observe::Logger log = out.named("baton.relay");
  // A line for each event is asked for, since nobody may read the log of a busy relay.
  const observe::RelayLog events(log, {.published = observe::LogLevel::debug});
  if (server) log.info("METRICS", {{"url", server->url() + "/metrics"}});
  if (server && !server->warning().empty()) log.warn(server->warning());
  options->on_error = [&](const Error& error) { events.write(error); };
  options->on_event = [&](const RelayEvent& event) {
    if (counting) counting->count(event);
    events.write(event);
  };
  Relay relay(opened->locks, arguments.outbox, *broker, std::move(*options));
  log.info("RELAY_STARTED", {{"broker", (*broker)->describe()}});
  Result<void> ended;
  {
    const std::jthread showing([&](const std::stop_token& stop) {
      if (counting) every_second(stop, [&] { counting->show(relay.stats()); });
    });
    ended = relay.run(ending.token());
  }
  const int signal = ending.finish();
  if (!ended) return ended.error();
  log.info("RELAY_STOPPED", {{"published", std::to_string(relay.stats().published)}});
  return signal != 0 ? exit_code::by_signal + signal : exit_code::ok;
}

}  // namespace baton::cli
