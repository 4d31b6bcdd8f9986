#include "baton/metrics_server.h"

#include <charconv>
#include <utility>

#include "http/server.h"

namespace baton::observe {
namespace {

// One scraper comes every few seconds.
constexpr std::size_t kMaxConnections = 16;

Result<http::ServerOptions> parse_listen(const std::string& listen) {
  http::ServerOptions options{.io_threads = 1, .max_connections = kMaxConnections};
  const auto colon = listen.rfind(':');
  if (colon != std::string::npos && colon > 0) {
    options.address = listen.substr(0, colon);
    if (options.address.front() == '[' && options.address.back() == ']') {
      options.address = options.address.substr(1, options.address.size() - 2);
    }
    const char* end = listen.data() + listen.size();
    const auto read = std::from_chars(listen.data() + colon + 1, end, options.port);
    if (read.ec == std::errc() && read.ptr == end && !options.address.empty()) return options;
  }
  return Error{.code = Code::bad_request, .message = "metrics: write IP:PORT, as 127.0.0.1:9464"};
}

http::Router routes(std::shared_ptr<Metrics> metrics, std::function<bool()> leads) {
  http::Router router;
  router.add(
      "GET", "/healthz",
      [](const http::Request&) { return http::Response{.body = "{\"status\":\"alive\"}\n"}; },
      http::Router::Run::at_once);
  router.add("GET", "/metrics", [metrics = std::move(metrics)](const http::Request&) {
    return http::Response{.body = metrics->text(),
                          .content_type = std::string(Metrics::kContentType)};
  });
  if (leads) {
    router.add(
        "GET", "/leader",
        [leads = std::move(leads)](const http::Request&) {
          return leads() ? http::Response{.body = "{\"leader\":true}\n"}
                         : http::Response{.status = 503, .body = "{\"leader\":false}\n"};
        },
        http::Router::Run::at_once);
  }
  return router;
}

}  // namespace

class MetricsServer::Impl {
 public:
  Impl(std::unique_ptr<http::Server> server, std::shared_ptr<http::WorkerPool> workers,
       bool on_loopback)
      : workers_(std::move(workers)), server_(std::move(server)) {
    if (on_loopback) return;
    warning_ = "everybody who reaches " + server_->url() +
               " may read the metrics: listen on 127.0.0.1, or in a network of its own";
  }
  ~Impl() {
    server_->stop(Millis(0));
    workers_->stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const http::Server& server() const { return *server_; }
  [[nodiscard]] const std::string& warning() const { return warning_; }

 private:
  std::shared_ptr<http::WorkerPool> workers_;
  std::unique_ptr<http::Server> server_;
  std::string warning_;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& listen,
                                                            std::shared_ptr<Metrics> metrics,
                                                            std::function<bool()> leads) {
  auto options = parse_listen(listen);
  if (!options) return options.error();
  const bool on_loopback = http::is_loopback_address(options->address);
  auto workers = std::make_shared<http::WorkerPool>(1);
  auto server = http::Server::start(routes(std::move(metrics), std::move(leads)),
                                    std::move(*options), workers);
  if (!server) {
    workers->stop();
    server.error().message = "metrics: " + server.error().message;
    return server.error();
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(
      std::make_unique<Impl>(std::move(*server), std::move(workers), on_loopback)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsServer::~MetricsServer() = default;

const std::string& MetricsServer::warning() const { return impl_->warning(); }
std::uint16_t MetricsServer::port() const { return impl_->server().port(); }
std::string MetricsServer::url() const { return impl_->server().url(); }

}  // namespace baton::observe
