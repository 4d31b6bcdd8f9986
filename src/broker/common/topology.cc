// The checks of a topology that are the same for every broker.

#include <algorithm>
#include <limits>
#include <set>

#include "baton/broker.h"
#include "baton/name.h"
#include "broker/common/message.h"

namespace baton {
namespace {

Error bad_request(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

// Empty, or what is wrong; names with control characters are not repeated.
std::string name_problem(const std::string& what, const std::string& name) {
  if (name.empty()) return "the name of " + what + " is empty";
  if (name.size() > broker::kMaxShortText) {
    return "the name of " + what + " has " + std::to_string(name.size()) + " bytes, at most " +
           std::to_string(broker::kMaxShortText) + " are allowed";
  }
  if (has_control_character(name) || !is_valid_utf8_text(name)) {
    return "the name of " + what + " has control characters or is not UTF-8";
  }
  if (name.starts_with("amq.")) {
    return "'" + name + "': names that begin with amq. are reserved by RabbitMQ";
  }
  return {};
}

std::string describe(const Topology::Binding& binding) {
  return "the binding of exchange '" + binding.exchange + "' to " +
         (binding.queue.empty() ? "exchange '" + binding.to_exchange : "queue '" + binding.queue) +
         "'";
}

std::string topic_pattern_problem(std::string_view pattern) {
  if (pattern.empty()) return "has an empty pattern; # takes everything";
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find('.', begin), pattern.size());
    const std::string_view word = pattern.substr(begin, end - begin);
    if (word.empty()) return "has a pattern with an empty word";
    if (word.size() > 1 && word.find_first_of("*#") != std::string_view::npos) {
      return "has a pattern with '" + std::string(word) + "': * and # stand for whole words";
    }
    begin = end + 1;
  }
  return {};
}

std::string header_pattern_problem(std::string_view pattern) {
  const auto equals = pattern.find('=');
  if (equals != std::string_view::npos && equals > 0) return {};
  return "is from a headers exchange, whose pattern is NAME=VALUE";
}

class Check {
 public:
  explicit Check(const Topology& topology) : topology_(topology) {}

  Result<void> run() {
    for (const auto& exchange : topology_.exchanges) {
      if (auto problem = name_problem("an exchange", exchange.name); !problem.empty()) {
        return bad_request(std::move(problem));
      }
      if (!exchanges_.insert(exchange.name).second) {
        return bad_request("exchange '" + exchange.name + "' is there twice");
      }
    }
    for (const auto& exchange : topology_.exchanges) {
      if (exchange.alternate.empty() || exchanges_.contains(exchange.alternate)) continue;
      return bad_request("exchange '" + exchange.name + "' has the alternate exchange '" +
                         exchange.alternate + "', which the topology does not have");
    }
    for (const auto& queue : topology_.queues) {
      if (auto checked = check_queue(queue); !checked) return checked;
    }
    std::set<std::string> bindings;
    for (const auto& binding : topology_.bindings) {
      if (auto checked = check_binding(binding); !checked) return checked;
      std::string all = binding.exchange;
      for (const auto* part : {&binding.pattern, &binding.queue, &binding.to_exchange}) {
        all += '\0' + *part;
      }
      if (!bindings.insert(std::move(all)).second) {
        return bad_request(describe(binding) + " is there twice with one pattern");
      }
    }
    return {};
  }

 private:
  Result<void> check_queue(const Topology::Queue& queue) {
    std::vector<std::string> names{queue.name};
    if (queue.dead_letters) names.push_back(broker::dead_letter_queue(queue.name));
    for (const auto& name : names) {
      if (auto problem = name_problem("a queue", name); !problem.empty()) {
        return bad_request(std::move(problem));
      }
      if (!queues_.insert(name).second) {
        return bad_request("queue '" + name + "' is there twice" +
                           (name == queue.name ? "" : ": it is also for dead letters"));
      }
    }
    if (queue.max_length > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
      return bad_request("queue '" + queue.name + "': max_length is at most 2147483647");
    }
    return {};
  }

  Result<void> check_binding(const Topology::Binding& binding) {
    if (binding.queue.empty() == binding.to_exchange.empty()) {
      return bad_request("a binding of exchange '" + binding.exchange +
                         "' names a queue or an exchange to bind to, one of the two");
    }
    const auto from =
        std::find_if(topology_.exchanges.begin(), topology_.exchanges.end(),
                     [&](const auto& exchange) { return exchange.name == binding.exchange; });
    if (from == topology_.exchanges.end()) {
      return bad_request(describe(binding) +
                         " is from an exchange that the topology does not have");
    }
    if (!binding.queue.empty() && !queues_.contains(binding.queue)) {
      return bad_request(describe(binding) + " is to a queue that the topology does not have");
    }
    if (!binding.to_exchange.empty() && !exchanges_.contains(binding.to_exchange)) {
      return bad_request(describe(binding) + " is to an exchange that the topology does not have");
    }
    if (binding.pattern.size() > broker::kMaxShortText) {
      return bad_request(describe(binding) + " has a pattern of " +
                         std::to_string(binding.pattern.size()) + " bytes, at most " +
                         std::to_string(broker::kMaxShortText) + " are allowed");
    }
    if (has_control_character(binding.pattern) || !is_valid_utf8_text(binding.pattern)) {
      return bad_request(describe(binding) +
                         " has a pattern with control characters, or that is not UTF-8");
    }
    const std::string problem = from->type == Topology::Type::topic
                                    ? topic_pattern_problem(binding.pattern)
                                    : header_pattern_problem(binding.pattern);
    if (!problem.empty()) return bad_request(describe(binding) + " " + problem);
    return {};
  }

  const Topology& topology_;
  std::set<std::string> exchanges_;
  std::set<std::string> queues_;  // those for dead letters too
};

}  // namespace

Result<void> check_topology(const Topology& topology) { return Check(topology).run(); }

std::string lane_queue(std::string_view queue, int lane) {
  return std::string(queue) + "." + std::to_string(lane);
}

Topology with_lanes(Topology topology, const std::string& queue) {
  const auto whole = std::find_if(topology.queues.begin(), topology.queues.end(),
                                  [&](const auto& one) { return one.name == queue; });
  if (whole == topology.queues.end()) return topology;
  Topology::Queue lane_of = *whole;
  lane_of.single_active = true;
  topology.queues.erase(whole);
  const std::string lanes = queue + ".lanes";
  const std::string rest = queue + ".rest";
  for (auto& binding : topology.bindings) {
    if (binding.queue != queue) continue;
    binding.queue.clear();
    binding.to_exchange = lanes;
  }
  topology.exchanges.push_back({.name = rest});
  topology.exchanges.push_back({.name = lanes, .type = Topology::Type::headers, .alternate = rest});
  for (int lane = 0; lane < kLanes; ++lane) {
    lane_of.name = lane_queue(queue, lane);
    topology.queues.push_back(lane_of);
    topology.bindings.push_back(
        {.exchange = lanes, .pattern = "x-lane=" + std::to_string(lane), .queue = lane_of.name});
  }
  topology.bindings.push_back({.exchange = rest, .pattern = "#", .queue = lane_queue(queue, 0)});
  return topology;
}

}  // namespace baton
