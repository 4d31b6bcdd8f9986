#include "apps/warehouse/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "apps/warehouse/warehouse.yaml.h"
#include "policy/duration.h"
#include "policy/suggest.h"
#include "policy/yaml.h"

namespace baton::warehouse {
namespace {

using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::array<std::string_view, 2> kTopKeys = {"scheduler", "warehouse"};
constexpr std::array<std::string_view, 7> kKeys = {
    "batch", "batches", "cursor", "lateness", "observers", "sources", "statement-timeout"};
constexpr std::array<std::string_view, 2> kCursors = {"time", "xid"};
constexpr std::size_t kMaxObservers = 1000;  // of one type
constexpr std::size_t kMaxName = 100;
constexpr const char* kDefaultSource = "sqlite:warehouse-source.db";

Error wrong(const YamlNode& node, const std::string& what) {
  return policy::yaml_error(node.line, node.key + " must be " + what);
}

Result<void> read_count(const YamlNode& node, std::size_t most, std::size_t& into) {
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, problem] = std::from_chars(node.text.data(), end, into);
  if (node.kind != Kind::text || problem != std::errc() || rest != end || into == 0 ||
      into > most) {
    return wrong(node, "a number from 1 to " + std::to_string(most));
  }
  return {};
}

Result<void> read_time(const YamlNode& node, Millis least, Millis most, Millis& into) {
  std::int64_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, problem] = std::from_chars(node.text.data(), end, number);
  const bool bare = problem == std::errc() && rest == end;
  auto time = bare ? Result<Millis>(Millis(number)) : policy::parse_duration(node.text);
  if (node.kind != Kind::text || !time || *time < least || *time > most) {
    return wrong(node, "milliseconds or a duration such as 5s, from " +
                           policy::print_duration(least) + " to " + policy::print_duration(most));
  }
  into = *time;
  return {};
}

Result<void> read_observers(const YamlNode& node, Config& config) {
  if (node.kind != Kind::map) return wrong(node, "a map of types, each with a list of observers");
  config.observers.clear();
  for (const YamlNode& item : node.items) {
    if (auto type = observer_type(item.key); !type) {
      return policy::yaml_error(item.key_line, type.error().message);
    }
    auto& names = config.observers[item.key];
    for (const YamlNode& name : item.items) {
      const bool again = std::find(names.begin(), names.end(), name.text) != names.end();
      if (name.kind != Kind::text || name.text.empty() || name.text.size() > kMaxName || again) {
        return policy::yaml_error(name.line, "observers of " + item.key +
                                                 " are names, each of its own and at most " +
                                                 std::to_string(kMaxName) + " bytes");
      }
      names.push_back(name.text);
    }
    if (item.kind != Kind::list || names.empty() || names.size() > kMaxObservers) {
      return wrong(item, "a list of at most " + std::to_string(kMaxObservers) + " observers");
    }
  }
  return {};
}

Result<void> read_sources(const YamlNode& node, Config& config) {
  if (node.kind != Kind::map) return wrong(node, "a map of types, each with the URL of its source");
  for (const YamlNode& item : node.items) {
    if (item.kind != Kind::text) return wrong(item, "sqlite:PATH or postgres://…");
    const std::string type = item.key == "all" ? "" : item.key + "=";
    if (auto ok = set_source(config, type + item.text); !ok) {
      return policy::yaml_error(item.line, ok.error().message);
    }
  }
  return {};
}

Result<void> read_key(const YamlNode& item, Config& config) {
  if (item.key == "batch") return read_count(item, 10'000, config.limits.batch);
  if (item.key == "batches") return read_count(item, 10'000, config.limits.batches);
  if (item.key == "observers") return read_observers(item, config);
  if (item.key == "sources") return read_sources(item, config);
  if (item.key == "lateness") {
    return read_time(item, Millis(0), std::chrono::hours(24), config.source.lateness);
  }
  if (item.key == "statement-timeout") {
    return read_time(item, Millis(100), std::chrono::hours(1), config.statement_timeout);
  }
  if (item.key == "cursor") {
    if (item.text != kCursors[0] && item.text != kCursors[1]) return wrong(item, "time or xid");
    config.source.cursor = item.text == kCursors[0] ? Cursor::time : Cursor::xid;
    return {};
  }
  return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, kKeys));
}

Result<void> read_warehouse(const YamlNode& node, Config& config) {
  if (node.kind != Kind::map) return wrong(node, "a map");
  for (const YamlNode& item : node.items) {
    if (auto ok = read_key(item, config); !ok) return ok;
  }
  return {};
}

// A section of the scheduler speaks for jobs that there are; a type may be there without observers.
Result<void> check_jobs(const Config& config) {
  std::vector<std::string> jobs;
  for (const ObserverType& type : observer_types()) jobs.push_back(type.job());
  return config.jobs.check(jobs);
}

}  // namespace

const std::string& Config::source_of(const std::string& type) const {
  const auto own = sources.find(type);
  return own != sources.end() ? own->second : sources.at("");
}

Result<void> set_source(Config& config, const std::string& words) {
  const auto equals = words.find('=');
  const bool named = equals != std::string::npos && equals < words.find(':');
  const std::string type = named ? words.substr(0, equals) : "";
  if (named) {
    if (auto known = observer_type(type); !known) return known.error();
  }
  config.sources[type] = named ? words.substr(equals + 1) : words;
  return {};
}

Result<Config> parse_config(std::string_view yaml) {
  auto document = policy::read_yaml(yaml);
  if (!document) return document.error();
  Config config;
  config.sources[""] = kDefaultSource;
  if (document->kind != Kind::map) {
    return policy::yaml_error(1, "the keys are scheduler and warehouse");
  }
  auto jobs = JobConfig::parse(yaml);
  if (!jobs) return jobs.error();
  config.jobs = std::move(*jobs);
  for (const YamlNode& item : document->items) {
    if (std::find(kTopKeys.begin(), kTopKeys.end(), item.key) == kTopKeys.end()) {
      return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, kTopKeys));
    }
    if (item.key != "warehouse") continue;
    if (auto ok = read_warehouse(item, config); !ok) return ok.error();
  }
  if (config.observers.empty()) {
    return policy::yaml_error(1, "warehouse.observers names no observers");
  }
  if (auto ok = check_jobs(config); !ok) return ok.error();
  return config;
}

Result<Config> read_config(const std::string& path) {
  if (path.empty()) return parse_config(embedded::apps_warehouse::warehouse_yaml);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Error{.code = Code::bad_request, .message = "cannot read " + path};
  }
  auto config = parse_config(text.str());
  if (!config) config.error().message = path + ": " + config.error().message;
  return config;
}

}  // namespace baton::warehouse
