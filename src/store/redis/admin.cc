#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "baton/redis_store.h"
#include "store/common/findings.h"
#include "store/common/url.h"
#include "store/redis/examine.h"
#include "store/redis/find.h"
#include "store/redis/forget.lua.h"
#include "store/redis/raise.lua.h"
#include "store/redis/redis_error.h"
#include "store/redis/redis_store.h"

namespace baton {
namespace {

namespace redis = store::redis;
using redis::Value;
using WallClock = std::function<std::chrono::microseconds()>;

// The layout of the keys and values. A digit before each value leaves room for others.
constexpr int kSchemaVersion = 1;

// Where apply.lua gives no more tokens.
constexpr Token kSpent = (Token{1} << 52) - (Token{1} << 20);

// The lines "name:value" of INFO.
std::map<std::string, std::string> parse_info(std::string_view text) {
  std::map<std::string, std::string> info;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    info.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return info;
}

std::string memory_of(const std::string& policy, const std::string& limit) {
  if (policy.empty()) return "unknown: this user may see neither INFO nor CONFIG GET";
  if (policy == "noeviction") return policy;
  return policy + (limit == "0" ? "; no harm while maxmemory is 0, but" : ": locks can vanish;") +
         " set it to noeviction";
}

std::string persistence_of(const std::map<std::string, std::string>& info,
                           const std::string& fsync) {
  const auto aof = info.find("aof_enabled");
  if (info.empty()) return "unknown: this user may not see INFO";
  if (aof == info.end() || aof->second != "1") {
    return "no append-only file: a restart of the server loses locks";
  }
  if (fsync.empty()) return "append-only file";
  return "append-only file, appendfsync " + fsync +
         (fsync == "always" ? "" : ": a crash of the server loses the last second of locks");
}

class RedisAdmin final : public StoreAdmin {
 public:
  RedisAdmin(redis::Settings settings, WallClock clock)
      : settings_(std::move(settings)),
        clock_(std::move(clock)),
        context_(settings_),
        connections_(settings_) {}

  Result<StoreStatus> status(Deadline deadline) override {
    auto connection = connect(deadline);
    if (!connection) return connection.error();
    StoreStatus status{.kind = "redis",
                       .location = settings_.location,
                       .schema_version = kSchemaVersion,
                       .schema_expected = kSchemaVersion};
    const auto add = [&](std::string name, std::string value) {
      status.details.emplace_back(std::move(name), std::move(value));
    };
    add("server", "Redis " + (*connection)->server_version() +
                      (context_.clustered ? ", cluster" : "") +
                      ((*connection)->is_replica() ? ", a read-only replica" : ""));
    auto info = (*connection)->ask({"INFO", "everything"}, deadline);
    if (!info) return info.error();
    const auto lines = parse_info(info->text);
    add("memory policy", memory_of(config(**connection, "maxmemory-policy", lines, deadline),
                                   config(**connection, "maxmemory", lines, deadline)));
    add("persistence", persistence_of(lines, config(**connection, "appendfsync", lines, deadline)));
    if (const auto replicas = lines.find("connected_slaves"); replicas != lines.end()) {
      add("replicas",
          replicas->second + (settings_.wait_replicas > 0
                                  ? ", waits for " + std::to_string(settings_.wait_replicas)
                                  : ", waits for none"));
    }
    if (auto counted = count(status, deadline); !counted) return counted.error();
    return status;
  }

  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    auto connection = connect(deadline);
    if (!connection) return connection.error();
    redis::Connection& server = **connection;
    auto info = server.ask({"INFO", "everything"}, deadline);
    if (!info) return info.error();
    redis::Facts facts{.info = parse_info(info->text),
                       .replica = server.is_replica(),
                       .wait_replicas = settings_.wait_replicas,
                       .unverified = settings_.uses_tls && !settings_.tls.verify,
                       .password_in_clear = !settings_.password.empty() && !settings_.uses_tls &&
                                            !store::is_local(settings_.node.host)};
    facts.memory_policy = config(server, "maxmemory-policy", facts.info, deadline);
    facts.memory_limit = config(server, "maxmemory", facts.info, deadline);
    facts.fsync = config(server, "appendfsync", facts.info, deadline);
    std::vector<Finding> measured;
    if (!facts.replica && !context_.clustered) examine_speed(server, ttl, deadline, measured);
    examine_clock(server, deadline, measured);
    if (auto damaged = store::damaged_finding(store::damaged_names([&](const Query& query) {
          return redis::find(context_, connections_, query, std::nullopt, deadline);
        }))) {
      measured.push_back(std::move(*damaged));
    }
    return redis::examine(facts, std::move(measured));
  }

  Result<void> forget_damaged(const std::string& key, Deadline deadline) override {
    if (auto connection = connect(deadline); !connection) return connection.error();
    const std::string name = context_.layout.name(key);
    const int slot = redis::slot_of(name);
    auto server = connections_.to(context_.node_of(slot), deadline);
    if (!server) return server.error();
    auto value = (*server)->ask({"GET", name}, deadline);
    if (value && value->is_error("MOVED ")) {
      context_.learn_moved(value->text);
      server = connections_.to(context_.node_of(slot), deadline);
      if (!server) return server.error();
      value = (*server)->ask({"GET", name}, deadline);
    }
    if (!value) return value.error();
    const auto state = redis::state_in(*value);
    if (!state && value->kind == Value::Kind::error) {
      return redis::error_for(value->text, settings_);
    }
    if (!state) return store::nothing_stored(key);
    if (*state) return store::not_damaged(key);
    const bool text = value->kind == Value::Kind::text;
    auto removed = (*server)->ask({"EVAL", embedded::store_redis::forget_lua, "1", name,
                                   text ? value->text : "", text ? "string" : ""},
                                  deadline);
    if (!removed) return removed.error();
    if (removed->kind == Value::Kind::error) return redis::error_for(removed->text, settings_);
    if (removed->number == 0) return store::changed_meanwhile(key);
    return {};
  }

  Result<std::pair<int, int>> migrate(Deadline deadline) override {
    auto connection = connect(deadline);
    if (!connection) return connection.error();
    return std::pair(kSchemaVersion, kSchemaVersion);
  }

  Result<void> raise_tokens(Token floor, Deadline deadline) override {
    if (floor >= kSpent) {
      return Error{.code = Code::bad_request,
                   .message = "a token in Redis is below 2^52 - 2^20; nothing was raised"};
    }
    auto connection = connect(deadline);
    if (!connection) return connection.error();
    const std::string number = std::to_string(floor);
    if (context_.clustered) {
      const auto now = (*connection)->server_time_at(BootClock::now(), deadline);
      if (!now) return now.error();
      if (floor >= static_cast<Token>(*now)) {
        return Error{.code = Code::unsupported,
                     .message =
                         "in a cluster a region that is new starts at the server's clock, and the "
                         "floor is above that"};
      }
    } else if (auto set = raise(**connection, context_.layout.floor(), number, deadline); !set) {
      return set;
    }
    return each_counter(deadline, [&](redis::Connection& at, const std::string& counter) {
      return raise(at, counter, number, deadline);
    });
  }

 private:
  Result<redis::Connection*> connect(Deadline deadline) {
    auto connection = redis::Connection::open(settings_, settings_.node, deadline);
    if (!connection) return connection.error();
    context_.clustered = (*connection)->clustered();
    connections_.adopt(std::move(*connection));
    return connections_.to(settings_.node, deadline);
  }

  using AtCounter = std::function<Result<void>(redis::Connection&, const std::string& key)>;
  Result<void> each_counter(Deadline deadline, const AtCounter& look) {
    return redis::scan(context_, connections_, context_.layout.counters_pattern(), deadline,
                       [&](redis::Connection& at, const std::vector<Value>& found) {
                         Result<void> fine;
                         for (const Value& key : found) {
                           if (!context_.layout.is_counter(key.text)) continue;
                           if (fine = look(at, key.text); !fine) break;
                         }
                         return fine;
                       });
  }

  // A key that goes by itself.
  void examine_speed(redis::Connection& server, Millis ttl, Deadline deadline,
                     std::vector<Finding>& findings) const {
    const std::string key = context_.layout.floor() + ".doctor";
    bool full = false;
    const auto slowest = store::slowest_of(4, [&] {
      const auto set = server.ask({"SET", key, "", "PX", "1"}, deadline);
      full = set && set->is_error("OOM");
      return set && set->kind != Value::Kind::error;
    });
    if (full) {
      findings.push_back({.code = "memory-full",
                          .severity = Severity::danger,
                          .what = settings_.location + " has no memory left (maxmemory)",
                          .consequence =
                              "no lock can be taken or queued for; those that are held are "
                              "still renewed and released",
                          .remedy = "raise maxmemory, or remove other data"});
    } else if (!slowest) {
      findings.push_back({.code = "not-writable",
                          .severity = Severity::danger,
                          .what = settings_.location + " refuses to write",
                          .consequence = "no lock can be taken",
                          .remedy = "is its disk full, or does the user lack +set?"});
    } else if (auto slow = store::slow_finding(*slowest, ttl, settings_.location)) {
      findings.push_back(std::move(*slow));
    }
  }

  void examine_clock(redis::Connection& server, Deadline deadline,
                     std::vector<Finding>& findings) const {
    const auto before = clock_();
    const auto time = server.ask({"TIME"}, deadline);
    const auto after = clock_();
    if (!time || time->list.size() != 2) return;
    const auto number = [](const std::string& text) {
      std::int64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    const std::chrono::microseconds theirs(number(time->list[0].text) * 1'000'000 +
                                           number(time->list[1].text));
    if (auto off = store::clock_finding(theirs - (before + after) / 2, after - before)) {
      findings.push_back(std::move(*off));
    }
  }

  Result<void> raise(redis::Connection& connection, const std::string& key,
                     const std::string& floor, Deadline deadline) {
    auto raised =
        connection.ask({"EVAL", embedded::store_redis::raise_lua, "1", key, floor}, deadline);
    if (!raised) return raised.error();
    if (raised->kind == Value::Kind::error) return redis::error_for(raised->text, settings_);
    return {};
  }

  // Managed servers may refuse CONFIG and tell the same by INFO.
  static std::string config(redis::Connection& connection, const std::string& name,
                            const std::map<std::string, std::string>& info, Deadline deadline) {
    const auto value = connection.ask({"CONFIG", "GET", name}, deadline);
    if (value && value->list.size() == 2) return value->list[1].text;
    std::string line = name;
    std::replace(line.begin(), line.end(), '-', '_');
    const auto it = info.find(line);
    return it == info.end() ? std::string() : it->second;
  }

  Result<void> count(StoreStatus& status, Deadline deadline) {
    std::size_t names = 0;
    auto scanned = redis::scan(context_, connections_, context_.layout.pattern({}), deadline,
                               [&](redis::Connection&, const std::vector<Value>& found) {
                                 for (const Value& key : found) {
                                   names += context_.layout.key_in(key.text) ? 1 : 0;
                                 }
                                 return Result<void>{};
                               });
    if (!scanned) return scanned;
    Token last = 0;
    scanned = each_counter(
        deadline, [&](redis::Connection& at, const std::string& counter) -> Result<void> {
          auto value = at.ask({"GET", counter}, deadline);
          if (!value) return value.error();
          Token token = 0;
          std::from_chars(value->text.data(), value->text.data() + value->text.size(), token);
          last = std::max(last, token);
          return {};
        });
    if (!scanned) return scanned;
    status.details.emplace_back("names", std::to_string(names));
    status.details.emplace_back("last token", std::to_string(last));
    return {};
  }

  const redis::Settings settings_;
  const WallClock clock_;
  redis::StoreContext context_;
  redis::ConnectionSet connections_;
};

}  // namespace

Result<std::unique_ptr<StoreAdmin>> store::open_redis_admin(std::string_view url, WallClock clock) {
  auto settings = redis::parse_settings(url);
  if (!settings) return settings.error();
  return std::unique_ptr<StoreAdmin>(
      std::make_unique<RedisAdmin>(std::move(*settings), std::move(clock)));
}

Result<std::unique_ptr<StoreAdmin>> open_redis_admin(std::string_view url, Deadline /*deadline*/) {
  return store::open_redis_admin(url, store::wall_clock);
}

}  // namespace baton
