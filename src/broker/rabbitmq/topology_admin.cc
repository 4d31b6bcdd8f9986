#include "broker/rabbitmq/topology_admin.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <set>

#include "broker/common/message.h"
#include "broker/rabbitmq/inequivalent.h"

namespace baton::broker::rabbitmq {
namespace {

using Severity = BrokerFinding::Severity;

constexpr int kMostDifferences = 16;

std::string_view name_of(Topology::Type type) {
  return type == Topology::Type::topic ? "topic" : "headers";
}

// Where the dead letters of the queues go, by queue; empty: nowhere.
std::map<std::string, std::string> dead_letter_queues(const Topology& topology) {
  std::map<std::string, std::string> all;
  for (const auto& queue : topology.queues) {
    if (queue.dead_letters) all[queue.name] = dead_letter_queue(queue.name);
  }
  return all;
}

// The arguments that we declare a queue with. At-least-once dead lettering needs reject-publish,
// and a queue that drops its oldest messages, by a policy of an operator, would lose them.
std::vector<amqp_table_entry_t> arguments_of(const Topology::Queue& queue,
                                             const std::string& dead_letters) {
  using Text = std::string_view;
  std::vector<amqp_table_entry_t> arguments{entry_of("x-queue-type", Text("quorum")),
                                            entry_of("x-overflow", Text("reject-publish"))};
  if (!dead_letters.empty()) {
    arguments.push_back(entry_of("x-dead-letter-exchange", Text("")));
    arguments.push_back(entry_of("x-dead-letter-routing-key", Text(dead_letters)));
    arguments.push_back(entry_of("x-dead-letter-strategy", Text("at-least-once")));
    arguments.push_back(entry_of("x-delivery-limit", static_cast<std::int32_t>(kDeliveryLimit)));
  }
  if (queue.single_active) arguments.push_back(entry_of("x-single-active-consumer", true));
  if (queue.max_length != 0) {
    arguments.push_back(entry_of("x-max-length", static_cast<std::int32_t>(queue.max_length)));
  }
  return arguments;
}

// The argument as it is there, so that the next difference shows. False if it cannot be written.
bool adopt(const Inequivalent& difference, std::vector<amqp_table_entry_t>& arguments,
           std::deque<std::string>& texts) {
  std::erase_if(arguments,
                [&](const auto& entry) { return view_of(entry.key) == difference.argument; });
  if (difference.there.none()) return true;
  const std::string& type = difference.there.type;
  const std::string& name = texts.emplace_back(difference.argument);
  const std::string& text = texts.emplace_back(difference.there.text);
  if (type == "longstr") {
    arguments.push_back(entry_of(name, std::string_view(text)));
  } else if (type == "bool") {
    arguments.push_back(entry_of(name, text == "true"));
  } else {
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || type.empty()) return false;
    auto& entry = arguments.emplace_back(entry_of(name, std::int32_t{0}));
    entry.value.kind = AMQP_FIELD_KIND_I64;
    entry.value.value.i64 = number;
  }
  return true;
}

std::string shown(const Inequivalent::Value& value) {
  return value.text.empty() ? "''" : value.text;
}

BrokerFinding finding_of(const std::string& kind, const std::string& name,
                         const Inequivalent& difference) {
  BrokerFinding finding{Severity::problem, "other-arguments", name, ""};
  std::string remedy = ": remove it, or declare what is there";
  if (difference.argument == "x-queue-type" && difference.there.text != "quorum") {
    finding.code = "classic-queue";
    remedy =
        ": a queue that is no quorum queue can lose messages with its node; drain it, delete "
        "it and apply the topology";
  } else if (difference.argument == "x-message-ttl") {
    finding.code = "message-ttl";
    remedy = ": messages that wait longer are lost; drain it, delete it and apply the topology";
  } else if (difference.argument == "x-overflow") {
    finding.code = "drops-messages";
    remedy = ": a full queue would drop messages; drain it, delete it and apply the topology";
  }
  finding.message = kind + " " + name + " exists with " + difference.argument + " " +
                    shown(difference.there) + ", not " + shown(difference.wanted) + remedy;
  return finding;
}

BrokerFinding missing(const std::string& kind, const std::string& name) {
  return {Severity::problem, "missing-" + kind, name,
          kind + " " + name + " does not exist: apply the topology"};
}

BrokerFinding other(const std::string& kind, const std::string& name, const Channel::Reply& reply) {
  if (reply.code == AMQP_ACCESS_REFUSED) {
    return {Severity::note, "not-visible", name,
            "this user may not compare the arguments of " + kind + " " + name + ": " + reply.text};
  }
  return {Severity::problem, "other-arguments", name,
          kind + " " + name + " is not what the topology says: " + reply.text};
}

}  // namespace

Topology with_dead_letters(const Topology& topology) {
  Topology all = topology;
  for (const auto& [queue, dead_letters] : dead_letter_queues(topology)) {
    all.queues.push_back({.name = dead_letters, .dead_letters = false});
  }
  return all;
}

Result<std::unique_ptr<TopologyAdmin>> TopologyAdmin::open(const Settings& settings, Deadline by) {
  auto connection = Connection::open(settings, "Baton topology", by);
  if (!connection) return connection.error();
  return std::unique_ptr<TopologyAdmin>(new TopologyAdmin(std::move(*connection), by));
}

Result<Channel::Reply> TopologyAdmin::declare_exchange(const Topology::Exchange& exchange,
                                                       bool passive) {
  Arguments arguments;
  if (!exchange.alternate.empty()) {
    arguments.push_back(entry_of("alternate-exchange", std::string_view(exchange.alternate)));
  }
  amqp_exchange_declare_t declare{.exchange = bytes_of(exchange.name),
                                  .type = bytes_of(name_of(exchange.type)),
                                  .passive = static_cast<amqp_boolean_t>(passive),
                                  .durable = 1,
                                  .arguments = table_of(arguments)};
  return channel_.ask(AMQP_EXCHANGE_DECLARE_METHOD, &declare, by_);
}

Result<Channel::Reply> TopologyAdmin::declare_queue(const std::string& name, bool passive,
                                                    Arguments arguments) {
  amqp_queue_declare_t declare{.queue = bytes_of(name),
                               .passive = static_cast<amqp_boolean_t>(passive),
                               .durable = 1,
                               .arguments = table_of(arguments)};
  return channel_.ask(AMQP_QUEUE_DECLARE_METHOD, &declare, by_);
}

Result<Channel::Reply> TopologyAdmin::bind(const Topology::Binding& binding, Topology::Type type) {
  Arguments arguments;
  std::string_view key = binding.pattern;
  if (type == Topology::Type::headers) {
    const auto equals = key.find('=');
    // Without that, headers whose names begin with x- match everything.
    const std::string_view match = key.starts_with("x-") ? "all-with-x" : "all";
    arguments.push_back(entry_of("x-match", match));
    arguments.push_back(entry_of(key.substr(0, equals), key.substr(equals + 1)));
    key = {};
  }
  if (!binding.queue.empty()) {
    amqp_queue_bind_t bind{.queue = bytes_of(binding.queue),
                           .exchange = bytes_of(binding.exchange),
                           .routing_key = bytes_of(key),
                           .arguments = table_of(arguments)};
    return channel_.ask(AMQP_QUEUE_BIND_METHOD, &bind, by_);
  }
  amqp_exchange_bind_t bind{.destination = bytes_of(binding.to_exchange),
                            .source = bytes_of(binding.exchange),
                            .routing_key = bytes_of(key),
                            .arguments = table_of(arguments)};
  return channel_.ask(AMQP_EXCHANGE_BIND_METHOD, &bind, by_);
}

Error TopologyAdmin::refused(const std::string& what, const Channel::Reply& reply) const {
  return {
      .code = reply.code == AMQP_ACCESS_REFUSED ? Code::unauthorized : Code::bad_store,
      .message = connection_->settings().location + ": cannot make " + what + ": " + reply.text};
}

Result<void> TopologyAdmin::make(const Topology& topology) {
  auto differences = compare(topology);
  if (!differences) return differences.error();
  std::set<std::string> missing_names;  // "exchange NAME" and "queue NAME"
  for (const BrokerFinding& finding : *differences) {
    constexpr std::string_view kMissing = "missing-";
    if (finding.code.starts_with(kMissing)) {
      missing_names.insert(finding.code.substr(kMissing.size()) + " " + finding.subject);
    } else if (finding.severity == Severity::problem) {
      return Error{.code = Code::bad_store, .message = finding.message};
    }
  }
  std::map<std::string, Topology::Type> types;
  for (const auto& exchange : topology.exchanges) {
    types[exchange.name] = exchange.type;
    if (!missing_names.contains("exchange " + exchange.name)) continue;
    auto reply = declare_exchange(exchange, false);
    if (!reply) return reply.error();
    if (reply->refused()) return refused("exchange " + exchange.name, *reply);
  }
  const auto dead_letters = dead_letter_queues(topology);
  const Topology all = with_dead_letters(topology);
  // Those for dead letters, which are last, first: so that no queue is there without its own.
  for (auto queue = all.queues.rbegin(); queue != all.queues.rend(); ++queue) {
    if (!missing_names.contains("queue " + queue->name)) continue;
    const auto dead = dead_letters.find(queue->name);
    const std::string to = dead == dead_letters.end() ? "" : dead->second;
    auto reply = declare_queue(queue->name, false, arguments_of(*queue, to));
    if (!reply) return reply.error();
    if (reply->refused()) return refused("queue " + queue->name, *reply);
  }
  for (const auto& binding : topology.bindings) {
    auto reply = bind(binding, types[binding.exchange]);
    if (!reply) return reply.error();
    if (reply->refused()) {
      return refused("the binding of exchange " + binding.exchange + " to " +
                         (binding.queue.empty() ? binding.to_exchange : binding.queue),
                     *reply);
    }
  }
  return {};
}

Result<void> TopologyAdmin::compare_exchange(const Topology::Exchange& exchange,
                                             std::vector<BrokerFinding>& findings) {
  auto reply = declare_exchange(exchange, true);
  if (reply && reply->code == AMQP_NOT_FOUND) {
    findings.push_back(missing("exchange", exchange.name));
    return {};
  }
  if (reply && !reply->refused()) reply = declare_exchange(exchange, false);
  if (!reply) return reply.error();
  if (!reply->refused()) return {};
  const auto difference = parse_inequivalent(reply->text);
  findings.push_back(difference ? finding_of("exchange", exchange.name, *difference)
                                : other("exchange", exchange.name, *reply));
  return {};
}

// The server names the first argument that differs. To see the others, declare it again with what
// is there, until nothing differs: a queue that exists is not changed by that.
Result<void> TopologyAdmin::compare_queue(const Topology::Queue& queue,
                                          const std::string& dead_letters,
                                          std::vector<BrokerFinding>& findings) {
  auto reply = declare_queue(queue.name, true);
  if (!reply) return reply.error();
  if (reply->code == AMQP_NOT_FOUND) {
    findings.push_back(missing("queue", queue.name));
    return {};
  }
  if (reply->refused()) {
    findings.push_back(other("queue", queue.name, *reply));
    return {};
  }
  Arguments arguments = arguments_of(queue, dead_letters);
  std::deque<std::string> texts;
  for (int found = 0; found < kMostDifferences; ++found) {
    reply = declare_queue(queue.name, false, arguments);
    if (!reply) return reply.error();
    if (!reply->refused()) return {};
    const auto difference = parse_inequivalent(reply->text);
    if (!difference) {
      // What is adopted may not fit together, as with a queue of another type.
      if (found == 0) findings.push_back(other("queue", queue.name, *reply));
      return {};
    }
    findings.push_back(finding_of("queue", queue.name, *difference));
    if (!adopt(*difference, arguments, texts)) return {};
  }
  return {};
}

Result<std::vector<BrokerFinding>> TopologyAdmin::compare(const Topology& topology) {
  std::vector<BrokerFinding> findings;
  for (const auto& exchange : topology.exchanges) {
    if (auto done = compare_exchange(exchange, findings); !done) return done.error();
  }
  const auto dead_letters = dead_letter_queues(topology);
  for (const auto& queue : with_dead_letters(topology).queues) {
    const auto dead = dead_letters.find(queue.name);
    auto done = compare_queue(queue, dead == dead_letters.end() ? "" : dead->second, findings);
    if (!done) return done.error();
  }
  return findings;
}

Result<std::vector<QueueInfo>> TopologyAdmin::count(const Topology& topology) {
  std::vector<QueueInfo> infos;
  for (const auto& queue : with_dead_letters(topology).queues) {
    auto reply = declare_queue(queue.name, true);
    if (!reply) return reply.error();
    QueueInfo& info = infos.emplace_back(QueueInfo{.name = queue.name});
    if (reply->code == AMQP_NOT_FOUND) {
      info.exists = false;
    } else if (reply->refused()) {
      return refused("a count of queue " + queue.name, *reply);
    } else {
      const auto* counted = static_cast<const amqp_queue_declare_ok_t*>(reply->fields);
      info.ready = counted->message_count;
      info.consumers = counted->consumer_count;
    }
  }
  return infos;
}

Result<std::optional<std::string>> TopologyAdmin::alarm() {
  if (auto opened = channel_.open(by_); !opened) return opened.error();
  amqp_basic_publish_t publish{.routing_key = bytes_of("baton.is-the-broker-blocked")};
  std::string& out = connection_->out();
  add_method(out, channel_.number(), AMQP_BASIC_PUBLISH_METHOD, &publish);
  add_empty_content(out, channel_.number());
  amqp_basic_qos_t question{.prefetch_count = 1};
  auto answer = channel_.ask(AMQP_BASIC_QOS_METHOD, &question, by_);
  if (connection_->blocked()) return std::optional(connection_->blocked_why());
  if (!answer) return answer.error();
  if (answer->refused()) return std::optional<std::string>();
  return std::optional<std::string>("");
}

}  // namespace baton::broker::rabbitmq
