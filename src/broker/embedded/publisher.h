#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "baton/broker.h"
#include "broker/embedded/presence.h"
#include "broker/embedded/routes.h"
#include "broker/embedded/topology_file.h"

namespace baton::broker {

// Publishes in transactions of limited size, flushed to the disk before their confirms.
class EmbeddedPublisher final : public Publisher {
 public:
  explicit EmbeddedPublisher(std::string path) : path_(std::move(path)) {}

  Result<std::uint64_t> publish(std::span<const Message> messages, Deadline by) override;
  Result<std::vector<Confirm>> confirms(Deadline by) override;
  [[nodiscard]] PublisherState state() const override { return state_; }

 private:
  // What a transaction does with a queue.
  struct Filling {
    std::int64_t last = 0;
    std::uint64_t ready = 0;  // known if the queue has a limit
    bool changed = false;
  };
  struct Connected {
    std::unique_ptr<Database> database;
    std::optional<Presence> presence;
    std::int64_t version = -1;  // of the topology below
    StoredTopology stored;
    Routes routes;
    Statement version_of, filling, given_back, insert, set_last;
  };

  [[nodiscard]] Result<void> connect(Deadline by);
  [[nodiscard]] Result<void> look(Deadline by);  // whether the file is there
  [[nodiscard]] Result<void> refresh_topology();
  // Gives the confirms of one transaction; an error means that nothing of it was taken, unless it
  // is in doubt.
  [[nodiscard]] Result<std::vector<Confirm>> write(std::span<const Message> messages,
                                                   std::uint64_t first_tag, Deadline by);
  [[nodiscard]] Result<Confirm> add(const Message& message, std::map<std::size_t, Filling>& queues);
  [[nodiscard]] Result<Filling*> filling(std::size_t queue, std::map<std::size_t, Filling>& queues);

  const std::string path_;
  std::unique_ptr<Connected> connected_;
  std::uint64_t next_tag_ = 1;
  std::deque<Confirm> confirms_;
  PublisherState state_;
};

}  // namespace baton::broker
