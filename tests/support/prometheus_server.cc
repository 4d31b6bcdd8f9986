#include "support/prometheus_server.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

std::string url_encoded(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return out;
}

// JSON strings are YAML strings; nothing here has quotes or control characters.
std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "\"" : ", \"") + word + "\"";
  return "[" + list + "]";
}

}  // namespace

PrometheusServer::PrometheusServer(PrometheusOptions options) : options_(std::move(options)) {
  std::ofstream(dir_ / "prometheus.yml")
      << "global: {scrape_interval: " << options_.interval
      << ", scrape_timeout: " << options_.interval << ", evaluation_interval: " << options_.interval
      << "}\n"
      << "rule_files: " << listed(options_.rule_files) << "\n"
      << "scrape_configs: [{job_name: baton, static_configs: [{targets: "
      << listed(options_.targets) << "}]}]\n";
  // Another test may take the port between our look and the server's bind.
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error("Prometheus does not start: " + log());
}

bool PrometheusServer::try_start() {
  // exec keeps the pid, so that the server is our direct child and can be stopped by it.
  server_ = std::make_unique<Process>(ProcessOptions{
      .argv = {"/bin/sh", "-c", R"(exec "$@" >>"$0" 2>&1)", dir_ / "log", "prometheus",
               "--config.file=" + (dir_ / "prometheus.yml").string(),
               "--storage.tsdb.path=" + (dir_ / "data").string(),
               "--web.listen-address=127.0.0.1:" + std::to_string(port_), "--log.level=warn"},
      .cwd = dir_.path()});
  // Reads until the test process is gone, however it went, and takes the server along.
  guard_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"/bin/sh", "-c", R"(read -r _ || true; kill -KILL "$1")", "guard",
                              std::to_string(server_->pid())}});
  const auto ready = [&] {
    const auto answer = http_.send({.url = url() + "/-/ready"}, BootClock::now() + Millis(2000));
    return answer && answer->ok();
  };
  return poll_until([&] { return ready() || !server_->running(); }, 2 * patience) &&
         server_->running();
}

std::string PrometheusServer::send(const http_client::HttpRequest& request) {
  const auto answer = http_.send(request, BootClock::now() + patience);
  if (!answer) throw std::runtime_error("Prometheus: " + answer.error().message + ": " + log());
  return answer->body;
}

std::string PrometheusServer::query(const std::string& expression) {
  return send({.method = "POST",
               .url = url() + "/api/v1/query",
               .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
               .body = "query=" + url_encoded(expression)});
}

std::string PrometheusServer::get(const std::string& path) { return send({.url = url() + path}); }

std::string PrometheusServer::log() const {
  std::ifstream file(dir_ / "log", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace baton::test
