#pragma once

#include <string>

#include "baton/relay.h"

namespace baton::relay {

// Removes the events of an outbox that were published long enough ago, on a session of its own, so
// that no event waits for it.
class Retention {
 public:
  Retention(std::string url, const RelayOptions& options)
      : url_(std::move(url)), options_(options) {}

  // Blocks for some statements. True if nothing is left to do for now.
  bool clean(const std::stop_token& stop);

 private:
  [[nodiscard]] Result<void> clean_all(const std::stop_token& stop, std::int64_t& removed) const;
  void tell(Error error);

  const std::string url_;
  const RelayOptions& options_;
  std::string told_;
};

}  // namespace baton::relay
