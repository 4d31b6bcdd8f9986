#include "store/postgres_advisory/verbs.h"

#include <algorithm>

#include "core/apply.h"
#include "store/postgres_advisory/answers.h"

namespace baton::store::postgres_advisory {

bool looks_around(const Request& request) {
  switch (request.verb) {
    case Verb::acquire:
    case Verb::claim:
    case Verb::break_:
    case Verb::get: return true;
    default: return false;
  }
}

void Verbs::give_sessions(std::vector<std::unique_ptr<Session>> sessions,
                          std::optional<Error> shortage) {
  sessions_ = std::move(sessions);
  shortage_ = std::move(shortage);
}

Result<std::unique_ptr<Session>> Verbs::session() {
  if (sessions_.empty() && shortage_) return *shortage_;
  if (sessions_.empty()) {
    // Rare: its grant was still there when the batch began.
    auto drawn = grants_.pool().draw(1, sessions_, send_by_, deadline_);
    if (!drawn) return drawn.error();
  }
  auto session = std::move(sessions_.back());
  sessions_.pop_back();
  return session;
}

// Comes for what it was handed: its own session knows all that matters, and it is in a hurry.
bool Verbs::is_handed(const Request& request) const {
  if (request.verb != Verb::claim) return false;
  const GrantEntry* entry = grants_.table().find(request.targets[0].key, request.grant);
  return entry != nullptr && entry->holds && entry->holder.state == HolderState::handed &&
         entry->holder.expires > grants_.now();
}

Result<void> Verbs::look_ahead(std::span<const Request* const> requests) {
  std::vector<const Request*> some;
  for (const Request* request : requests) {
    if (!looks_around(*request) || is_handed(*request) || goes_unseen(*request)) continue;
    some.push_back(request);
  }
  return look_at(some);
}

Result<void> Verbs::look_at(const std::vector<const Request*>& requests) {
  std::vector<std::string> keys;
  for (const Request* request : requests) keys.push_back(request->targets[0].key);
  if (keys.empty()) return {};
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  auto all = queries_.look(keys, grants_.now(), grants_.at(), deadline_);
  if (!all) return all.error();
  for (auto& [key, view] : *all) seen_.insert_or_assign(key, std::move(view));
  return {};
}

Result<const ServerView*> Verbs::seen(const std::string& key) {
  if (const auto known = seen_.find(key); known != seen_.end()) return &known->second;
  auto all = queries_.look({key}, grants_.now(), grants_.at(), deadline_);
  if (!all) return all.error();
  return &(seen_[key] = std::move(all->at(key)));
}

Result<std::optional<Reply>> Verbs::denied(const Request& request) {
  const auto version = version_of(request);
  if (!version) return std::optional<Reply>();
  const auto now = seen(request.targets[0].key);
  if (!now) return now.error();
  if ((*now)->schema_version == *version) return std::optional<Reply>();
  return std::optional(outcome(Outcome::denied, "the store has schema version " +
                                                    std::to_string((*now)->schema_version) +
                                                    ", this client " + std::to_string(*version)));
}

// Every look shows the schema's version too.
void Verbs::changed(const std::string& key) {
  if (key == core::kSchemaKey) {
    seen_.clear();
  } else {
    seen_.erase(key);
  }
}

void Verbs::settle(const std::string& key) {
  if (grants_.settle(key, deadline_)) changed(key);
}

Result<Reply> Verbs::apply(const Request& request) {
  if (BootClock::now() >= send_by_) return too_late();
  const Request* one = &request;
  switch (request.verb) {
    case Verb::acquire: return acquire({&one, 1}).front();
    case Verb::claim: return claim(request);
    case Verb::release: return release({&one, 1}).front();
    case Verb::cancel: return cancel(request);
    case Verb::break_: return break_holders(request);
    case Verb::get: return get(request);
    case Verb::renew: {
      Reply reply;
      Reply* answer = &reply;
      if (auto renewed = renew({&one, 1}, {&answer, 1}); !renewed) return renewed.error();
      return reply;
    }
    case Verb::convert: break;
  }
  return outcome(Outcome::unsupported, "this store cannot do that");
}

std::vector<Result<Reply>> Verbs::release(std::span<const Request* const> requests) {
  std::vector<Releasing> begun;
  for (const Request* request : requests) begun.push_back(begin_release(*request));
  std::vector<Result<Reply>> replies;
  for (const Releasing& one : begun) replies.push_back(finish_release(one));
  return replies;
}

Verbs::Releasing Verbs::begin_release(const Request& request) {
  if (BootClock::now() >= send_by_) return {&request, Result<Reply>(too_late())};
  const std::string& key = request.targets[0].key;
  settle(key);
  GrantEntry* entry = grants_.table().find(key, request.grant);
  if (entry == nullptr || !entry->holds) {
    return {&request, gone(request, grants_.why_lost(request.grant))};
  }
  const core::Holder& holder = entry->holder;
  const bool park = holder.state == HolderState::held &&
                    holder.since + StoreTime(holder.at_least_for) > grants_.now();
  return {&request, grants_.begin_end(*entry, request.change, park, deadline_)};
}

Result<Reply> Verbs::finish_release(const Releasing& releasing) {
  if (const auto* reply = std::get_if<Result<Reply>>(&releasing.begun)) return *reply;
  const Request& request = *releasing.request;
  const auto ended = grants_.finish_end(std::get<Grants::Ending>(releasing.begun), deadline_);
  if (!ended) {
    if (ended.error().code == Code::lost) return gone(request, ended.error().message);
    return ended.error();
  }
  changed(request.targets[0].key);
  settle(request.targets[0].key);
  return outcome(Outcome::done);
}

// `lost` is for what is certainly not written.
Result<Reply> Verbs::gone(const Request& request, const std::string& why) const {
  if (!grants_.may_have_written(request)) return lost(why);
  return Error{.code = Code::unavailable,
               .message = why + "; its note may have been written before",
               .in_doubt = true};
}

Result<Reply> Verbs::cancel(const Request& request) {
  const std::string& key = request.targets[0].key;
  settle(key);
  if (request.converting) return outcome(Outcome::done);
  if (GrantEntry* entry = grants_.table().find(key, request.grant)) {
    // Nobody ever worked under a grant that is cancelled, so at_least_for does not keep it.
    auto ended = grants_.end(*entry, {}, false, deadline_);
    if (!ended && ended.error().code != Code::lost) return ended.error();
    changed(key);
  }
  if (request.tombstone_ttl > Millis{0}) {
    // In this process is enough: no other acts for a grant, and this one's sessions are its own.
    auto& tombstones = grants_.table().at(key).tombstones;
    std::erase_if(tombstones, [&](const auto& t) { return t.grant == request.grant; });
    tombstones.push_back({request.grant, grants_.now() + StoreTime(request.tombstone_ttl)});
  }
  settle(key);
  return outcome(Outcome::done);
}

Result<Reply> Verbs::get(const Request& request) {
  const std::string& key = request.targets[0].key;
  const auto now = seen(key);
  if (!now) return now.error();
  Reply reply = outcome(Outcome::done);
  reply.info =
      core::describe(key, grants_.table().name_state(key, **now), grants_.now(), ~std::size_t{0});
  return reply;
}

}  // namespace baton::store::postgres_advisory
