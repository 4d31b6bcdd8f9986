#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "baton/broker.h"
#include "broker/embedded/presence.h"
#include "broker/embedded/queue_file.h"
#include "broker/embedded/watcher.h"

namespace baton::broker {

// A consumer of one queue. It lives as long as its slot in the presence file is locked; when that
// ends, other consumers of the queue give back what it has.
class EmbeddedSubscription final : public Subscription {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EmbeddedSubscription>> open(
      const std::string& path, std::string_view queue, const SubscribeOptions& options,
      std::shared_ptr<Watcher> watcher, Millis lease, Deadline by);
  ~EmbeddedSubscription() override;
  EmbeddedSubscription(const EmbeddedSubscription&) = delete;
  EmbeddedSubscription& operator=(const EmbeddedSubscription&) = delete;

  Result<std::vector<Delivery>> take(std::size_t most, Deadline by) override;
  // Takes the messages that are there now; waits for the file only, not for messages.
  Result<std::vector<Delivery>> take_some(std::size_t most, Deadline by);
  Result<void> settle(std::span<const Settlement> settlements, Deadline by) override;

 private:
  EmbeddedSubscription(std::unique_ptr<QueueFile> file, Presence presence,
                       std::shared_ptr<Watcher> watcher, std::size_t prefetch);

  // Looks without the write lock, and takes if there is something.
  [[nodiscard]] Result<std::vector<Delivery>> look(std::size_t most, Deadline by);
  [[nodiscard]] Result<bool> worth_taking(Deadline by);
  [[nodiscard]] Result<std::vector<Delivery>> take_now(std::size_t most, Deadline by);
  [[nodiscard]] Result<void> settle_now(std::span<const Settlement> settlements, Deadline by);
  [[nodiscard]] Result<void> check_usable() const;
  Error end(Error error);

  std::unique_ptr<QueueFile> file_;
  std::optional<Presence> presence_;  // none once the subscription has ended
  std::shared_ptr<Watcher> watcher_;
  const std::size_t prefetch_;
  std::int64_t consumer_ = 0;
  std::uint64_t last_tag_ = 0;
  std::map<std::uint64_t, std::int64_t> unsettled_;  // places by tag
  Instant next_dead_check_;
};

}  // namespace baton::broker
