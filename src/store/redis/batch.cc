#include "store/redis/batch.h"

#include <algorithm>
#include <charconv>

#include "core/apply.h"
#include "store/redis/redis_error.h"

namespace baton::store::redis {
namespace {

constexpr std::size_t kMaxRequests = 256;  // in a parcel: others wait while the script runs
constexpr std::size_t kMaxKeys = 1000;     // Lua's stack bounds it
constexpr int kRounds = 8;                 // of a batch that a cluster sends about

// "MOVED 3999 127.0.0.1:6381"
std::optional<std::pair<int, Node>> parse_moved(std::string_view text) {
  const auto first = text.find(' ');
  const auto second = text.find(' ', first + 1);
  const auto colon = text.rfind(':');
  if (second == std::string_view::npos || colon == std::string_view::npos || colon < second) {
    return std::nullopt;
  }
  int slot = 0;
  Node node{std::string(text.substr(second + 1, colon - second - 1)), 0};
  std::from_chars(text.data() + first + 1, text.data() + second, slot);
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), node.port);
  if (node.port == 0) return std::nullopt;
  return std::pair{slot, std::move(node)};
}

}  // namespace

Node Service::node_of(int slot) const {
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(slot);
  return it == nodes_.end() ? settings.node : it->second;
}

void Service::moved(int slot, const Node& node) {
  const std::lock_guard lock(mutex_);
  // A node without a name is the one that was asked.
  nodes_[slot] = node.host.empty() ? Node{settings.node.host, node.port} : node;
}

bool Service::learn_moved(std::string_view error) {
  const auto there = parse_moved(error);
  if (there) moved(there->first, there->second);
  return there.has_value();
}

void Service::forget_nodes() {
  const std::lock_guard lock(mutex_);
  nodes_.clear();
}

BatchRun::BatchRun(std::span<const Request> batch, std::optional<core::StoreTime> at,
                   Service& service)
    : batch_(batch), at_(at), service_(service), replies_(batch.size()) {
  sort_out();
}

std::optional<std::string> BatchRun::unsupported(const Request& request) const {
  if (!service_.clustered) return std::nullopt;
  const int slot = slot_of(service_.layout.name(request.asks[0].key));
  for (const Ask& ask : request.asks) {
    if (slot_of(service_.layout.name(ask.key)) != slot) {
      return "in a Redis Cluster the names of one request must be of one region";
    }
  }
  if (request.asks[0].key == core::kSchemaKey && request.change.ordinal) {
    return "a Redis Cluster keeps no policy: its version cannot be checked in every slot";
  }
  return std::nullopt;
}

void BatchRun::sort_out() {
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const Request& request = batch_[i];
    if (auto rule = core::broken_rule(request)) {
      replies_[i].message = std::move(*rule);
      continue;
    }
    if (auto why = unsupported(request)) {
      replies_[i].outcome = Outcome::unsupported;
      replies_[i].message = std::move(*why);
      continue;
    }
    renewals_only_ = renewals_only_ && request.verb == Verb::renew;
    const int slot = service_.clustered ? slot_of(service_.layout.name(request.asks[0].key)) : 0;
    // The last one of its slot, so that requests for one name keep their order.
    const auto open = std::find_if(parcels_.rbegin(), parcels_.rend(),
                                   [&](const Waybill& bill) { return bill.slot == slot; });
    Waybill* bill = open == parcels_.rend() ? nullptr : &*open;
    if (bill == nullptr || bill->parcel.places().size() == kMaxRequests ||
        bill->parcel.keys_with(request) > kMaxKeys) {
      parcels_.push_back({Parcel(service_.layout, service_.clustered), slot});
      bill = &parcels_.back();
    }
    bill->parcel.add(request, i);
  }
}

bool BatchRun::all_delivered() const {
  return std::all_of(parcels_.begin(), parcels_.end(),
                     [](const Waybill& bill) { return bill.delivered; });
}

// Whoever is told of a grant must be able to rely on it; what only ends something need not last.
bool BatchRun::must_be_replicated() const {
  return service_.settings.wait_replicas > 0 &&
         std::any_of(batch_.begin(), batch_.end(), [](const Request& request) {
           switch (request.verb) {
             case Verb::release: return !request.change.empty();
             case Verb::cancel: return request.tombstone > Millis{0};
             case Verb::get: return false;
             default: return true;
           }
         });
}

Result<std::vector<Reply>> BatchRun::send(Seat& seat, Instant entered, Deadline deadline) {
  entered_ = entered;
  deadline_ = std::min(deadline, entered + service_.settings.apply_limit);
  for (int i = 0; i < kRounds; ++i) {
    if (auto sent = round(seat); !sent) return judged(sent.error());
    if (all_delivered()) {
      // Of one request alone the caller learns best what is wrong with its name.
      if (batch_.size() == 1 && !parcels_.empty() && replies_[0].outcome == Outcome::invalid) {
        return Error{.code = Code::bad_store,
                     .message = batch_[0].asks[0].key + ": " + replies_[0].message};
      }
      return std::move(replies_);
    }
    if (BootClock::now() >= last_effect()) break;
  }
  return judged(Error{.code = Code::unavailable,
                      .message = service_.settings.location + " could not answer in time",
                      .retryable = true});
}

Instant BatchRun::last_effect() const {
  return std::min(deadline_, entered_ + service_.settings.effect_limit());
}

Error BatchRun::judged(Error error) const {
  error.in_doubt = error.in_doubt || answered_;
  return error;
}

Result<void> BatchRun::round(Seat& seat) {
  std::map<Node, std::vector<Waybill*>> by_node;
  for (Waybill& bill : parcels_) {
    if (bill.delivered) continue;
    const Node node = bill.there.value_or(service_.node_of(bill.slot));
    by_node[node].push_back(&bill);
  }
  for (const auto& [node, bills] : by_node) {
    if (auto sent = send_to(seat, node, bills); !sent) return sent;
  }
  return {};
}

Result<Commands> BatchRun::commands_for(Connection& connection,
                                        const std::vector<Waybill*>& bills) {
  const auto limit = connection.server_time_at(last_effect(), deadline_);
  if (!limit) return limit.error();
  const std::string sha = service_.script.get();
  const std::string not_after = std::to_string(*limit);
  const std::string now = at_ ? std::to_string(at_->count()) : std::string();
  const std::string channels = service_.layout.channels();
  const std::string floor = service_.clustered ? std::string() : service_.layout.floor();
  Commands commands;
  for (const Waybill* bill : bills) {
    const auto keys = bill->parcel.keys();
    const std::string count = std::to_string(keys.size());
    const std::string order = bill->parcel.order();
    std::vector<std::string_view> words{"EVALSHA", sha, count};
    words.insert(words.end(), keys.begin(), keys.end());
    for (const std::string* argument : {&not_after, &now, &order, &channels, &floor}) {
      words.push_back(*argument);
    }
    if (bill->asking) commands.add({"ASKING"});
    commands.add(words);
  }
  if (must_be_replicated()) {
    commands.add({"WAIT", std::to_string(service_.settings.wait_replicas),
                  std::to_string(service_.settings.wait_timeout.count())});
  }
  return commands;
}

Result<void> BatchRun::send_to(Seat& seat, const Node& node, const std::vector<Waybill*>& bills) {
  auto connection = seat.to(node, deadline_);
  if (!connection) {
    service_.forget_nodes();
    return connection.error();
  }
  if (std::exchange(script_gone_, false) || service_.script.get().empty()) {
    if (auto loaded = service_.script.load(**connection, service_.settings, deadline_); !loaded) {
      return loaded;
    }
  }
  const auto commands = commands_for(**connection, bills);
  if (!commands) return commands.error();
  const auto values = (*connection)->exchange(*commands, deadline_);
  if (!values) return values.error();
  auto value = values->begin();
  for (Waybill* bill : bills) {
    if (bill->asking) ++value;
    bill->asking = false;
    bill->there.reset();
    if (auto settled = settle(**connection, *bill, *value++); !settled) return settled;
  }
  if (value != values->end() && answered_ && value->number < service_.settings.wait_replicas) {
    return Error{.code = Code::unavailable,
                 .message = service_.settings.location + ": only " + std::to_string(value->number) +
                            " of " + std::to_string(service_.settings.wait_replicas) +
                            " replicas have it (wait_replicas)",
                 .retryable = true,
                 .in_doubt = true};
  }
  return {};
}

Result<void> BatchRun::settle(Connection& connection, Waybill& bill, const Value& value) {
  if (value.is_error("NOSCRIPT")) {
    script_gone_ = true;
    return {};
  }
  if (value.is_error("MOVED ") || value.is_error("ASK ")) return sent_elsewhere(bill, value.text);
  if (value.kind != Value::Kind::text) {
    // The address may lead to the new master by now.
    if (value.text.find("READONLY") != std::string::npos) connection.give_up();
    return error_for(value.text, service_.settings);
  }
  std::vector<const Request*> asked;
  for (const std::size_t place : bill.parcel.places()) asked.push_back(&batch_[place]);
  Answer answer = read_answer(value.text, asked);
  connection.learn_time(answer.server_time, BootClock::now());
  if (answer.late) return {};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    replies_[bill.parcel.places()[i]] = std::move(answer.replies[i]);
  }
  bill.delivered = true;
  answered_ = true;
  return {};
}

Result<void> BatchRun::sent_elsewhere(Waybill& bill, const std::string& error) {
  const auto there = parse_moved(error);
  if (!there) return error_for(error, service_.settings);
  if (error.starts_with("ASK")) {
    bill.asking = true;
    bill.there = there->second;
  } else {
    service_.moved(there->first, there->second);
  }
  return {};
}

}  // namespace baton::store::redis
