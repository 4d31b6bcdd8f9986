#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http_client/http_client.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

struct PrometheusOptions {
  std::vector<std::string> targets;     // host:port
  std::vector<std::string> rule_files;  // with their paths
  std::string interval = "200ms";       // of scraping and of evaluating rules
};

// A Prometheus of this test's own, on 127.0.0.1 and in its own directory. It ends with this object,
// and also if the test process dies. Every failure to start is an exception.
class PrometheusServer {
 public:
  explicit PrometheusServer(PrometheusOptions options);

  // The JSON that its API answers. Throws if it does not answer.
  [[nodiscard]] std::string query(const std::string& expression);
  [[nodiscard]] std::string get(const std::string& path);

 private:
  bool try_start();
  std::string send(const http_client::HttpRequest& request);
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string log() const;

  PrometheusOptions options_;
  TempDir dir_{"prometheus"};
  int port_ = 0;
  http_client::HttpClient http_;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Process> guard_;
};

}  // namespace baton::test
