#include "store/redis/find.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

#include "core/apply.h"
#include "store/redis/answer.h"
#include "store/redis/redis_error.h"

namespace baton::store::redis {
namespace {

constexpr std::size_t kKept = 5000;  // names in mind
constexpr std::size_t kChunk = 200;  // values asked for at once
constexpr std::string_view kScanCount = "1000";

Error only_looked(Error error) {
  error.in_doubt = false;
  return error;
}

// The masters of a cluster; else the one server.
Result<std::vector<Endpoint>> masters(StoreContext& context, ConnectionSet& connections,
                                      Deadline deadline) {
  if (!context.clustered) return std::vector{context.settings.node};
  auto connection = connections.to(context.settings.node, deadline);
  if (!connection) return connection.error();
  auto slots = (*connection)->ask({"CLUSTER", "SLOTS"}, deadline);
  if (!slots) return slots.error();
  if (slots->kind == Value::Kind::error) return error_for(slots->text, context.settings);
  std::set<Endpoint> nodes;
  for (const Value& range : slots->list) {
    if (range.list.size() < 3 || range.list[2].list.size() < 2) continue;
    const Value& master = range.list[2];
    const std::string& host = master.list[0].text;
    nodes.insert({host.empty() ? context.settings.node.host : host,
                  static_cast<int>(master.list[1].number)});
  }
  return std::vector(nodes.begin(), nodes.end());
}

// The first names in order that come behind `after`, and whether there may be more.
struct Names {
  std::set<std::string> keys;
  bool more = false;

  void offer(std::string key) {
    keys.insert(std::move(key));
    if (keys.size() <= kKept) return;
    keys.erase(std::prev(keys.end()));
    more = true;
  }
};

Result<Names> names_after(StoreContext& context, ConnectionSet& connections, const Query& query,
                          const std::string& after, Deadline deadline) {
  Names names;
  const std::string pattern = context.layout.pattern(core::key_prefix(query));
  auto scanned = scan(context, connections, pattern, deadline,
                      [&](Connection&, const std::vector<Value>& found) -> Result<void> {
                        for (const Value& redis_key : found) {
                          auto key = context.layout.key_in(redis_key.text);
                          if (key && *key > after) names.offer(std::move(*key));
                        }
                        return {};
                      });
  if (!scanned) return scanned.error();
  return names;
}

using Chunk = std::vector<std::string>;

// Values of these names in their order, and the server's time after all were read.
struct Read {
  std::vector<Value> values;
  core::StoreTime now{0};
};

Result<Read> read_from(StoreContext& context, ConnectionSet& connections, const Endpoint& node,
                       const Chunk& keys, Deadline deadline) {
  auto connection = connections.to(node, deadline);
  if (!connection) return connection.error();
  Commands commands;
  for (const auto& key : keys) commands.add({"GET", context.layout.name(key)});
  commands.add({"TIME"});
  auto values = (*connection)->exchange(commands, deadline);
  if (!values) return values.error();
  const Value time = std::move(values->back());
  values->pop_back();
  if (time.list.size() != 2) return error_for(time.text, context.settings);
  return Read{std::move(*values), core::StoreTime(std::stoll(time.list[0].text) * 1'000'000 +
                                                  std::stoll(time.list[1].text))};
}

// In a cluster each name by itself: a page is not worth more.
Result<Read> read_names(StoreContext& context, ConnectionSet& connections, const Chunk& keys,
                        Deadline deadline) {
  if (!context.clustered)
    return read_from(context, connections, context.settings.node, keys, deadline);
  Read all;
  for (const auto& key : keys) {
    const int slot = slot_of(context.layout.name(key));
    auto read = read_from(context, connections, context.node_of(slot), {key}, deadline);
    if (read && read->values[0].is_error("MOVED ")) {
      context.learn_moved(read->values[0].text);
      read = read_from(context, connections, context.node_of(slot), {key}, deadline);
    }
    if (!read) return read.error();
    all.values.push_back(std::move(read->values[0]));
    all.now = std::max(all.now, read->now);
  }
  return all;
}

}  // namespace

std::optional<Result<core::NameState>> state_in(const Value& value) {
  const auto damaged = [](std::string what) {
    return Result<core::NameState>(Error{.code = Code::bad_store, .message = std::move(what)});
  };
  if (value.is_error("WRONGTYPE ")) return damaged("damaged: not a string in Redis");
  if (value.kind != Value::Kind::text) return std::nullopt;
  try {
    return Result<core::NameState>(read_value(value.text));
  } catch (const std::exception& problem) {
    return damaged(std::string("a damaged value: ") + problem.what());
  }
}

Result<void> scan(StoreContext& context, ConnectionSet& connections, const std::string& pattern,
                  Deadline deadline,
                  const std::function<Result<void>(Connection&, const std::vector<Value>&)>& take) {
  const auto nodes = masters(context, connections, deadline);
  if (!nodes) return nodes.error();
  for (const Endpoint& node : *nodes) {
    auto connection = connections.to(node, deadline);
    if (!connection) return connection.error();
    std::string cursor = "0";
    do {
      auto page =
          (*connection)->ask({"SCAN", cursor, "MATCH", pattern, "COUNT", kScanCount}, deadline);
      if (!page) return page.error();
      if (page->list.size() != 2) return error_for(page->text, context.settings);
      cursor = page->list[0].text;
      if (auto taken = take(**connection, page->list[1].list); !taken) return taken;
    } while (cursor != "0");
  }
  return {};
}

Result<Page<LockInfo>> find(StoreContext& context, ConnectionSet& connections, const Query& query,
                            std::optional<core::StoreTime> at, Deadline deadline) {
  const std::size_t limit = std::max<std::size_t>(query.limit, 1);
  Page<LockInfo> page;
  std::string after = query.after;
  for (;;) {
    const auto names = names_after(context, connections, query, after, deadline);
    if (!names) return only_looked(names.error());
    for (auto it = names->keys.begin(); it != names->keys.end();) {
      Chunk keys;
      for (; it != names->keys.end() && keys.size() < kChunk; ++it) keys.push_back(*it);
      const auto read = read_names(context, connections, keys, deadline);
      if (!read) return only_looked(read.error());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const Value& value = read->values[i];
        const auto state = state_in(value);
        if (!state) continue;  // gone
        LockInfo info;
        if (*state) {
          info = core::describe(keys[i], **state, at.value_or(read->now), ~std::size_t{0});
        } else {
          info = {.key = keys[i], .damage = state->error().message};
        }
        if (!core::matches(query, info)) continue;
        if (page.items.size() == limit) {
          page.next = page.items.back().key;
          return page;
        }
        if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
        page.items.push_back(std::move(info));
      }
    }
    if (!names->more) return page;
    after = *names->keys.rbegin();
  }
}

}  // namespace baton::store::redis
