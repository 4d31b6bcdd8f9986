#include "store/redis/batch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "core/apply.h"
#include "store/common/duplicate_keys.h"
#include "store/redis/answer.h"
#include "store/redis/redis_error.h"

namespace baton::store::redis {
namespace {

constexpr int kRounds = 8;  // of a batch that a cluster sends about

// "MOVED 3999 127.0.0.1:6381"
std::optional<std::pair<int, Endpoint>> parse_moved(std::string_view text) {
  const auto first = text.find(' ');
  const auto second = text.find(' ', first + 1);
  const auto colon = text.rfind(':');
  if (second == std::string_view::npos || colon == std::string_view::npos || colon < second) {
    return std::nullopt;
  }
  int slot = 0;
  Endpoint node{std::string(text.substr(second + 1, colon - second - 1)), 0};
  std::from_chars(text.data() + first + 1, text.data() + second, slot);
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), node.port);
  if (node.port == 0) return std::nullopt;
  return std::pair{slot, std::move(node)};
}

}  // namespace

Endpoint StoreContext::node_of(int slot) const {
  if (!clustered) return settings.node;
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(slot);
  return it == nodes_.end() ? settings.node : it->second;
}

void StoreContext::moved(int slot, const Endpoint& node) {
  const std::lock_guard lock(mutex_);
  // A node without a name is the one that was asked.
  nodes_[slot] = node.host.empty() ? Endpoint{settings.node.host, node.port} : node;
}

bool StoreContext::learn_moved(std::string_view error) {
  const auto there = parse_moved(error);
  if (there) moved(there->first, there->second);
  return there.has_value();
}

void StoreContext::forget_nodes() {
  const std::lock_guard lock(mutex_);
  nodes_.clear();
}

BatchRun::BatchRun(std::span<const Request> batch, std::optional<core::StoreTime> at,
                   StoreContext& context)
    : batch_(batch), at_(at), context_(context), replies_(batch.size()) {
  plan_calls();
}

std::optional<std::string> BatchRun::unsupported(const Request& request) const {
  if (!context_.clustered) return std::nullopt;
  const int slot = slot_of(context_.layout.name(request.targets[0].key));
  for (const Target& target : request.targets) {
    if (slot_of(context_.layout.name(target.key)) != slot) {
      return "in a Redis Cluster the names of one request must be of one region";
    }
  }
  if (request.targets[0].key == core::kSchemaKey && request.change.ordinal) {
    return "a Redis Cluster keeps no policy: its version cannot be checked in every slot";
  }
  return std::nullopt;
}

// A request takes the fast path if it is a plain one, its name was free lately, and no other of
// the batch could see the difference: the names and grants of all others are different ones.
void BatchRun::plan_calls() {
  DuplicateKeys<std::string_view> names;
  DuplicateKeys<GrantId> grants;
  bool schema_in_use = false;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (auto rule = core::broken_rule(batch_[i])) {
      replies_[i].message = std::move(*rule);
      continue;
    }
    if (auto why = unsupported(batch_[i])) {
      replies_[i] = {.outcome = Outcome::unsupported, .message = std::move(*why)};
      continue;
    }
    replies_[i].outcome = Outcome::busy;  // to be answered
    if (batch_.size() == 1) continue;
    grants.add(batch_[i].grant);
    for (const Target& target : batch_[i].targets) {
      names.add(target.key);
      schema_in_use = schema_in_use || target.key == core::kSchemaKey;
    }
  }
  names.count();
  grants.count();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (replies_[i].outcome != Outcome::busy) continue;
    const Request& request = batch_[i];
    renewals_only_ = renewals_only_ && request.verb == Verb::renew && request.change.empty();
    const bool alone = !schema_in_use && !names.more_than_once(request.targets[0].key) &&
                       !grants.more_than_once(request.grant);
    add_to_call(i, route_of(request, alone));
  }
}

Route BatchRun::route_of(const Request& request, bool once) const {
  const std::string& key = request.targets[0].key;
  Route route;
  if (context_.clustered) route.slot = slot_of(context_.layout.name(key));
  if (!once || !is_plain(request) || context_.contended.has(key)) return route;
  if (request.verb == Verb::release) {
    route.script = Script::release_held;
  } else {
    route.script = Script::acquire_free;
    route.region = Layout::region_of(key);
    route.hold = std::max(request.ttl, request.at_least_for);
    route.version = request.schema_version;
  }
  return route;
}

// With the last ones of its route, so that requests for one name keep their order.
void BatchRun::add_to_call(std::size_t place, const Route& route) {
  const auto last = std::find_if(calls_.rbegin(), calls_.rend(), [&](const PendingCall& pending) {
    return pending.call.route() == route && !pending.sent;
  });
  if (last != calls_.rend() && last->call.has_room_for(batch_[place])) {
    last->call.add(place);
    return;
  }
  calls_.push_back({.call = ScriptCall(batch_, route)});
  calls_.back().call.add(place);
}

bool BatchRun::all_done() const {
  return std::all_of(calls_.begin(), calls_.end(),
                     [](const PendingCall& pending) { return pending.done; });
}

// A grant must be on the replicas before the client relies on it; a mere ending need not be.
bool BatchRun::must_be_replicated() const {
  return context_.settings.wait_replicas > 0 &&
         std::any_of(batch_.begin(), batch_.end(), [](const Request& request) {
           switch (request.verb) {
             case Verb::release: return !request.change.empty();
             case Verb::cancel: return request.tombstone_ttl > Millis{0};
             case Verb::get: return false;
             default: return true;
           }
         });
}

Result<std::vector<Reply>> BatchRun::send(ConnectionSet& connections, Instant entered,
                                          Deadline deadline) {
  unconnected_ = false;
  entered_ = entered;
  deadline_ = std::min(deadline, entered + context_.settings.apply_limit);
  for (int i = 0; i < kRounds; ++i) {
    if (auto sent = round(connections); !sent) return judged(sent.error());
    if (all_done()) return answer();
    if (BootClock::now() >= last_effect()) break;
  }
  return judged(Error{.code = Code::unavailable,
                      .message = context_.settings.location + " could not answer in time",
                      .retryable = true});
}

Result<std::vector<Reply>> BatchRun::answer() {
  if (refusal_ && !answered_) return *refusal_;
  for (const PendingCall& pending : calls_) {
    if (!pending.refused) continue;
    for (const std::size_t place : pending.call.places()) give_up_on(place);
  }
  // Of one request alone the caller learns best what is wrong.
  if (batch_.size() == 1 && replies_[0].outcome == Outcome::invalid) {
    return Error{.code = Code::bad_store,
                 .message = batch_[0].targets[0].key + ": " + replies_[0].message};
  }
  return std::move(replies_);
}

// The others have their replies, so this one needs one too, and the most honest is: not now.
void BatchRun::give_up_on(std::size_t place) {
  Reply& reply = replies_[place];
  reply.message = refusal_->message;
  reply.outcome = Outcome::invalid;
  if (refusal_->retryable) {
    reply.outcome = batch_[place].verb == Verb::claim ? Outcome::queued : Outcome::busy;
    reply.retry_after = Millis(200);
  }
}

Instant BatchRun::last_effect() const {
  return std::min(deadline_, entered_ + context_.settings.effect_limit());
}

Error BatchRun::judged(Error error) const {
  error.in_doubt = error.in_doubt || answered_;
  return error;
}

Result<void> BatchRun::round(ConnectionSet& connections) {
  if (calls_.size() == 1 && !calls_[0].there) {
    static constexpr std::array<std::size_t, 1> kOnlyOne{0};
    return send_to(connections, context_.node_of(calls_[0].call.route().slot), kOnlyOne);
  }
  std::map<Endpoint, std::vector<std::size_t>> by_node;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const PendingCall& pending = calls_[i];
    if (pending.done) continue;
    by_node[pending.there ? *pending.there : context_.node_of(pending.call.route().slot)].push_back(
        i);
  }
  for (const auto& [node, indexes] : by_node) {
    if (auto sent = send_to(connections, node, indexes); !sent) return sent;
  }
  return {};
}

// A connection to a server that knows the scripts, as far as we can tell.
Result<Connection*> BatchRun::ready(ConnectionSet& connections, const Endpoint& node) {
  auto connection = connections.to(node, deadline_);
  if (!connection) {
    unconnected_ = true;
    context_.forget_nodes();
    return connection.error();
  }
  if (without_scripts_.erase(node) == 0) return connection;
  if (auto loaded = context_.scripts.load(**connection, context_.settings, deadline_); !loaded) {
    return loaded.error();
  }
  return connection;
}

Result<const Commands*> BatchRun::commands_for(Connection& connection,
                                               std::span<const std::size_t> indexes) {
  const auto limit = connection.server_time_at(last_effect(), deadline_);
  if (!limit) return limit.error();
  Commands& commands = connection.fresh_commands();
  for (const std::size_t index : indexes) {
    PendingCall& pending = calls_[index];
    pending.sent = true;
    if (pending.there) commands.add({"ASKING"});
    pending.call.write(commands, context_.layout, context_.clustered,
                       {context_.scripts.name(pending.call.route().script), *limit, at_});
  }
  if (must_be_replicated()) {
    commands.add({"WAIT", std::to_string(context_.settings.wait_replicas),
                  std::to_string(context_.settings.wait_timeout.count())});
  }
  return &commands;
}

Result<void> BatchRun::send_to(ConnectionSet& connections, const Endpoint& node,
                               std::span<const std::size_t> indexes) {
  auto connection = ready(connections, node);
  if (!connection) return connection.error();
  const auto commands = commands_for(**connection, indexes);
  if (!commands) return commands.error();
  const auto values = (*connection)->exchange(**commands, deadline_);
  if (!values) return values.error();
  auto value = values->begin();
  for (const std::size_t index : indexes) {
    if (std::exchange(calls_[index].there, std::nullopt)) ++value;
    if (auto processed = process_reply(**connection, node, index, *value++); !processed)
      return processed;
  }
  if (value != values->end() && answered_ && value->number < context_.settings.wait_replicas) {
    return Error{.code = Code::unavailable,
                 .message = context_.settings.location + ": only " + std::to_string(value->number) +
                            " of " + std::to_string(context_.settings.wait_replicas) +
                            " replicas have it (wait_replicas)",
                 .retryable = true,
                 .in_doubt = true};
  }
  return {};
}

Result<void> BatchRun::process_reply(Connection& connection, const Endpoint& node,
                                     std::size_t index, const Value& value) {
  if (value.is_error("NOSCRIPT")) {
    without_scripts_.insert(node);
    return {};
  }
  if (value.is_error("MOVED ") || value.is_error("ASK ")) {
    return send_elsewhere(calls_[index], value.text);
  }
  if (value.kind == Value::Kind::error) {
    // The address may lead to the new master by now.
    if (value.text.find("READONLY") != std::string::npos) connection.give_up();
    Error error = error_for(value.text, context_.settings);
    if (error.in_doubt) return error;
    refusal_ = std::move(error);
    calls_[index].done = calls_[index].refused = true;
    return {};
  }
  if (calls_[index].call.route().script == Script::apply) {
    process_apply_reply(connection, calls_[index], value);
  } else {
    process_plain_reply(index, value);
  }
  return {};
}

void BatchRun::process_apply_reply(Connection& connection, PendingCall& pending,
                                   const Value& value) {
  std::vector<const Request*> asked;
  for (const std::size_t place : pending.call.places()) asked.push_back(&batch_[place]);
  Answer answer = read_answer(value.text, asked);
  connection.learn_time(answer.server_time, BootClock::now());
  if (answer.late) return;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    replies_[pending.call.places()[i]] = std::move(answer.replies[i]);
  }
  pending.done = true;
  answered_ = true;
}

// Requests that the short script left, or all if it came too late, go to the long one. A number
// says that it left nothing, a list begins with that number (of acquires only) and names what it
// left.
void BatchRun::process_plain_reply(std::size_t index, const Value& value) {
  calls_[index].done = true;
  const Route route = calls_[index].call.route();
  const bool acquires = route.script == Script::acquire_free;
  const auto places = calls_[index].call.take_places();  // filing moves the calls
  const bool late = value.kind == Value::Kind::nothing;
  if (!late && value.kind != Value::Kind::number && value.kind != Value::Kind::list) {
    throw std::runtime_error("a reply that is neither a number nor a list");
  }
  auto left = value.list.begin();
  std::int64_t first = value.number;
  if (acquires && value.kind == Value::Kind::list) {
    if (left == value.list.end()) throw std::runtime_error("a reply without a token");
    first = (left++)->number;
  }
  const bool gave_none = late || (acquires && first == 0);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool is_left = left != value.list.end() && left->number == static_cast<int>(i + 1);
    if (is_left) ++left;
    if (is_left || gave_none) {
      if (!late) context_.contended.add(batch_[places[i]].targets[0].key);
      add_to_call(places[i], {.slot = route.slot});
      continue;
    }
    answered_ = true;
    Reply& reply = replies_[places[i]];
    reply.outcome = acquires ? Outcome::granted : Outcome::done;
    if (acquires) reply.tokens = {static_cast<Token>(first) + i};
  }
}

Result<void> BatchRun::send_elsewhere(PendingCall& pending, const std::string& error) {
  const auto there = parse_moved(error);
  if (!there) return error_for(error, context_.settings);
  if (error.starts_with("ASK")) {
    pending.there = there->second;
  } else {
    context_.moved(there->first, there->second);
  }
  return {};
}

}  // namespace baton::store::redis
