#include "broker/embedded/routes.h"

#include <algorithm>
#include <set>

namespace baton::broker {
namespace {

constexpr std::size_t kMostRemembered = 4096;

}  // namespace

Routes::Routes(const Topology& topology) {
  std::map<std::string, std::size_t> queues;
  for (std::size_t i = 0; i < topology.queues.size(); ++i) queues[topology.queues[i].name] = i;
  for (const auto& exchange : topology.exchanges) {
    exchanges_[exchange.name] = {exchange.type, exchange.alternate, {}};
  }
  for (const auto& binding : topology.bindings) {
    const auto from = exchanges_.find(binding.exchange);
    if (from == exchanges_.end()) continue;
    Target target;
    target.pattern = binding.pattern;
    const auto equals = binding.pattern.find('=');
    if (from->second.type == Topology::Type::headers && equals != std::string::npos) {
      target.header_name = binding.pattern.substr(0, equals);
      target.header_value = binding.pattern.substr(equals + 1);
    }
    target.to_exchange = binding.to_exchange;
    if (binding.to_exchange.empty()) {
      const auto queue = queues.find(binding.queue);
      if (queue == queues.end()) continue;
      target.queue = queue->second;
    }
    from->second.targets.push_back(std::move(target));
  }
}

bool Routes::matches(const Exchange& exchange, const Target& target, const Message& message) {
  if (exchange.type == Topology::Type::topic) {
    return topic_matches(target.pattern, message.routing_key);
  }
  const auto header = message.headers.find(target.header_name);
  return header != message.headers.end() && header->second == target.header_value;
}

const std::vector<std::size_t>& Routes::route(const Message& message) {
  std::string key = message.exchange + '\0' + message.routing_key;
  if (const auto known = remembered_.find(key); known != remembered_.end()) return known->second;
  answer_.clear();
  bool headers_matter = false;
  // Every exchange once, so that exchanges that are bound in a circle come to an end.
  std::vector<std::string> to_visit{message.exchange};
  std::set<std::string> visited;
  while (!to_visit.empty()) {
    const std::string name = std::move(to_visit.back());
    to_visit.pop_back();
    const auto found = exchanges_.find(name);
    if (found == exchanges_.end() || !visited.insert(name).second) continue;
    const Exchange& exchange = found->second;
    headers_matter = headers_matter || exchange.type == Topology::Type::headers;
    bool any = false;
    for (const Target& target : exchange.targets) {
      if (!matches(exchange, target, message)) continue;
      any = true;
      if (target.to_exchange.empty()) {
        answer_.push_back(target.queue);
      } else {
        to_visit.push_back(target.to_exchange);
      }
    }
    if (!any && !exchange.alternate.empty()) to_visit.push_back(exchange.alternate);
  }
  std::sort(answer_.begin(), answer_.end());
  answer_.erase(std::unique(answer_.begin(), answer_.end()), answer_.end());
  if (headers_matter) return answer_;
  if (remembered_.size() >= kMostRemembered) remembered_.clear();
  return remembered_[std::move(key)] = answer_;
}

}  // namespace baton::broker
