#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "baton/metrics.h"
#include "baton/result.h"

namespace baton::observe {

// Serves /metrics and /healthz for a process that serves nothing else.
class BATON_EXPORT MetricsServer {
 public:
  // `listen` is IP:PORT; port 0 takes any free one. Serves when it returns, until it is destroyed.
  // With `leads`, GET /leader answers 200 while that is true, else 503. It is called on a thread of
  // the server and must not block.
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& listen,
                                                      std::shared_ptr<Metrics> metrics,
                                                      std::function<bool()> leads = {});
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Empty if only this machine reaches it; else a warning: anyone who reaches it reads the metrics.
  [[nodiscard]] const std::string& warning() const;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string url() const;  // http://address:port

 private:
  class Impl;
  explicit MetricsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
