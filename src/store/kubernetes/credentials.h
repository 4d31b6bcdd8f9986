#pragma once

#include <mutex>
#include <string>

#include <sys/stat.h>

#include "store/kubernetes/cluster.h"

namespace baton::store::kubernetes {

// The bearer token of a cluster, which a running cluster replaces now and then. Thread-safe.
class Credentials {
 public:
  explicit Credentials(const Cluster& cluster) : token_(cluster.token), file_(cluster.token_file) {}

  // The value of the header Authorization, or nothing for a client with only a certificate.
  [[nodiscard]] Result<std::string> authorization();

  // Whether somebody else keeps them fresh, so that those refused now may soon be others.
  [[nodiscard]] bool may_change() const { return !file_.empty(); }

  // The server did not take the last one: look again, even if the file seems unchanged.
  void doubt();

 private:
  [[nodiscard]] bool changed();

  std::mutex mutex_;
  std::string token_;
  const std::string file_;
  struct stat seen_ {};
};

}  // namespace baton::store::kubernetes
