// A topology as people write it: YAML, of which JSON is a part.

#include <array>
#include <charconv>

#include "baton/broker.h"
#include "policy/suggest.h"
#include "policy/yaml.h"

namespace baton {
namespace {

using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::array<std::string_view, 3> kTopKeys = {"exchanges", "queues", "bindings"};
constexpr std::array<std::string_view, 2> kExchangeKeys = {"type", "alternate"};
constexpr std::array<std::string_view, 4> kQueueKeys = {"dead-letters", "single-active",
                                                        "max-length", "ordered"};
constexpr std::array<std::string_view, 4> kBindingKeys = {"exchange", "pattern", "queue",
                                                          "to-exchange"};

struct QueueInFile : Topology::Queue {
  bool ordered = false;
};

Error expected(const YamlNode& node, const std::string& what) {
  return policy::yaml_error(
      node.line, (node.key.empty() ? "this" : node.key) + " must be " + what + ", not " +
                     (node.kind == Kind::text ? "'" + node.text.substr(0, 60) + "'"
                                              : std::string(policy::kind_name(node.kind))));
}

Error unknown_key(const YamlNode& item, std::span<const std::string_view> known) {
  return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, known));
}

Result<void> read(const YamlNode& node, std::string& into) {
  if (node.kind != Kind::text) return expected(node, "text");
  into = node.text;
  return {};
}

Result<void> read(const YamlNode& node, bool& into) {
  if (node.kind != Kind::text || (node.text != "true" && node.text != "false")) {
    return expected(node, "true or false");
  }
  into = node.text == "true";
  return {};
}

Result<void> read(const YamlNode& node, std::uint64_t& into) {
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, problem] = std::from_chars(node.text.data(), end, into);
  if (node.kind != Kind::text || problem != std::errc() || rest != end) {
    return expected(node, "a number of messages, or 0 for no limit");
  }
  return {};
}

Result<void> read(const YamlNode& node, Topology::Type& into) {
  if (node.kind != Kind::text || (node.text != "topic" && node.text != "headers")) {
    return expected(node, "topic or headers");
  }
  into = node.text == "topic" ? Topology::Type::topic : Topology::Type::headers;
  return {};
}

Result<void> read_item(const YamlNode& item, Topology::Exchange& exchange) {
  if (item.key == "type") return read(item, exchange.type);
  if (item.key == "alternate") return read(item, exchange.alternate);
  return unknown_key(item, kExchangeKeys);
}

Result<void> read_item(const YamlNode& item, QueueInFile& queue) {
  if (item.key == "ordered") return read(item, queue.ordered);
  if (item.key == "dead-letters") return read(item, queue.dead_letters);
  if (item.key == "single-active") return read(item, queue.single_active);
  if (item.key == "max-length") return read(item, queue.max_length);
  return unknown_key(item, kQueueKeys);
}

Result<void> read_item(const YamlNode& item, Topology::Binding& binding) {
  if (item.key == "exchange") return read(item, binding.exchange);
  if (item.key == "pattern") return read(item, binding.pattern);
  if (item.key == "queue") return read(item, binding.queue);
  if (item.key == "to-exchange") return read(item, binding.to_exchange);
  return unknown_key(item, kBindingKeys);
}

template <typename Part>
Result<void> read_items(const YamlNode& node, Part& part) {
  for (const YamlNode& item : node.items) {
    if (auto done = read_item(item, part); !done) return done;
  }
  return {};
}

// A map from names to what is said of them, which may be nothing.
template <typename Part>
Result<void> read_named(const YamlNode& node, std::vector<Part>& into) {
  if (node.kind == Kind::none) return {};
  if (node.kind != Kind::map) return expected(node, "a map of names");
  for (const YamlNode& named : node.items) {
    if (named.kind != Kind::none && named.kind != Kind::map) return expected(named, "a map");
    Part part;
    part.name = named.key;
    if (auto done = read_items(named, part); !done) return done;
    into.push_back(std::move(part));
  }
  return {};
}

Result<void> read_bindings(const YamlNode& node, std::vector<Topology::Binding>& into) {
  if (node.kind == Kind::none) return {};
  if (node.kind != Kind::list) return expected(node, "a list");
  for (const YamlNode& item : node.items) {
    if (item.kind != Kind::map) {
      return policy::yaml_error(
          item.line, "a binding must be a map, not " + std::string(policy::kind_name(item.kind)));
    }
    Topology::Binding binding;
    if (auto done = read_items(item, binding); !done) return done;
    into.push_back(std::move(binding));
  }
  return {};
}

}  // namespace

Result<Topology> parse_topology(std::string_view document) {
  auto root = policy::read_yaml(document);
  if (!root) return root.error();
  if (root->kind != Kind::map) {
    return policy::yaml_error(root->line, "expected exchanges, queues and bindings");
  }
  Topology topology;
  std::vector<QueueInFile> queues;
  for (const YamlNode& top : root->items) {
    Result<void> done;
    if (top.key == "exchanges") {
      done = read_named(top, topology.exchanges);
    } else if (top.key == "queues") {
      done = read_named(top, queues);
    } else if (top.key == "bindings") {
      done = read_bindings(top, topology.bindings);
    } else {
      done = unknown_key(top, kTopKeys);
    }
    if (!done) return done.error();
  }
  topology.queues.assign(queues.begin(), queues.end());
  if (auto checked = check_topology(topology); !checked) return checked.error();
  for (const QueueInFile& queue : queues) {
    if (queue.ordered) topology = with_lanes(std::move(topology), queue.name);
  }
  if (auto checked = check_topology(topology); !checked) return checked.error();
  return topology;
}

}  // namespace baton
