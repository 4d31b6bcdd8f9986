#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/rabbitmq/channel.h"

namespace baton::broker::rabbitmq {

// A topology with the queues for dead letters as queues of their own.
[[nodiscard]] Topology with_dead_letters(const Topology& topology);

// Declares and examines, on a connection of its own, until a deadline.
class TopologyAdmin {
 public:
  static Result<std::unique_ptr<TopologyAdmin>> open(const Settings& settings, Deadline by);

  Result<void> make(const Topology& topology);

  // Findings about queues and exchanges that are missing or have other arguments. AMQP does not
  // tell of bindings.
  Result<std::vector<BrokerFinding>> compare(const Topology& topology);

  Result<std::vector<QueueInfo>> count(const Topology& topology);

  // Why the server takes no messages now; empty if it does, nothing if this user may not know. The
  // server says it only to those who publish: a message that no queue gets. The last question: no
  // other is answered while the server does not read.
  Result<std::optional<std::string>> alarm();

  [[nodiscard]] const Connection& connection() const { return *connection_; }

 private:
  using Arguments = std::vector<amqp_table_entry_t>;
  TopologyAdmin(std::unique_ptr<Connection> connection, Deadline by)
      : connection_(std::move(connection)), channel_(*connection_, 1), by_(by) {}

  Result<Channel::Reply> declare_exchange(const Topology::Exchange& exchange, bool passive);
  Result<Channel::Reply> declare_queue(const std::string& name, bool passive,
                                       Arguments arguments = {});
  Result<Channel::Reply> bind(const Topology::Binding& binding, Topology::Type type);
  Result<void> compare_exchange(const Topology::Exchange& exchange,
                                std::vector<BrokerFinding>& findings);
  Result<void> compare_queue(const Topology::Queue& queue, const std::string& dead_letters,
                             std::vector<BrokerFinding>& findings);
  [[nodiscard]] Error refused(const std::string& what, const Channel::Reply& reply) const;

  std::unique_ptr<Connection> connection_;
  Channel channel_;
  Deadline by_;
};

}  // namespace baton::broker::rabbitmq
