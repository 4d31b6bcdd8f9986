#include "store/postgres/codec.h"

#include <array>

#include "core/apply.h"
#include "json/json.h"
#include "store/postgres/acquire_alike.sql.h"
#include "store/postgres/acquire_free.sql.h"
#include "store/postgres/acquire_known.sql.h"
#include "store/postgres/claim_many.sql.h"
#include "store/postgres/release_held.sql.h"
#include "store/postgres/release_many.sql.h"

namespace baton::store::postgres {

const Statement kAcquireFree{8,
                             "baton_acquire_free",
                             embedded::store_postgres::acquire_free_sql,
                             {25, 2950, 21, 20, 20, 20, 25, 25, 25, 25, 20}};
const Statement kAcquireKnown{10,
                              "baton_acquire_known",
                              embedded::store_postgres::acquire_known_sql,
                              {25, 2950, 21, 20, 20, 20, 25, 25, 25, 25, 20}};
const Statement kReleaseHeld{
    9, "baton_release_held", embedded::store_postgres::release_held_sql, {25, 2950, 20}};
const Statement kAcquireAlike{13,
                              "baton_acquire_alike",
                              embedded::store_postgres::acquire_alike_sql,
                              {kTextArray, kUuidArray, 21, 20, 20, 20, 25, 25, 25, 25, 20}};
const Statement kReleaseMany{14,
                             "baton_release_many",
                             embedded::store_postgres::release_many_sql,
                             {kTextArray, kUuidArray, 20}};
const Statement kAcquireOne{
    0,
    "baton_acquire_one",
    "SELECT * FROM baton.acquire_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    {25, 2950, 21, 20, 20, 20, 20, 20, 25, 25, 25, 25, 20}};
const Statement kReleaseOne{
    1, "baton_release_one", "SELECT * FROM baton.release_one($1, $2, $3)", {25, 2950, 20}};
const Statement kClaimMany{15,
                           "baton_claim_many",
                           embedded::store_postgres::claim_many_sql,
                           {kTextArray, kUuidArray, kInt8Array, 20}};
const Statement kQuick{2,
                       "baton_quick",
                       "SELECT * FROM baton.quick($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
                       {kTextArray, kUuidArray, kInt2Array, kInt8Array, kInt8Array, kTextArray,
                        kTextArray, kTextArray, kTextArray, kInt8Array, 20}};
const Statement kQuickNoted{
    12,
    "baton_quick_noted",
    "SELECT * FROM baton.quick_noted($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
    "$12, $13, $14, $15, $16, $17, $18)",
    {kTextArray, kUuidArray, kInt2Array, kInt8Array, kInt8Array, kTextArray, kTextArray, kTextArray,
     kTextArray, kInt8Array, kInt8Array, kInt8Array, kTextArray, kTextArray, kUuidArray, kInt8Array,
     kTextArray, 20}};
const Statement kQuickRenew{3,
                            "baton_quick_renew",
                            "SELECT * FROM baton.quick_renew($1, $2, $3)",
                            {kTextArray, kUuidArray, 20}};
const Statement kRenewUnlocked{11,
                               "baton_renew_unlocked",
                               "SELECT * FROM baton.renew_unlocked($1, $2, $3)",
                               {kTextArray, kUuidArray, 20}};
const Statement kApply{
    4,
    "baton_apply",
    "SELECT * FROM baton.apply($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
    "$12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)",
    {kInt2Array, kUuidArray, kInt4Array, kTextArray, kInt2Array, kInt8Array, kInt8Array, kInt8Array,
     kInt8Array, kInt8Array, kInt8Array, kInt8Array, kTextArray, kInt8Array, kTextArray, kTextArray,
     kTextArray, kTextArray, kTextArray, kTextArray, kBoolArray, 20}};
const Statement kFind{
    5, "baton_find", "SELECT * FROM baton.find($1, $2, $3, $4, $5, $6)", {25, 25, 16, 23, 20, 20}};
const Statement kClaimOne{7,
                          "baton_claim_one",
                          "SELECT * FROM baton.claim_one($1, $2, $3, $4, $5, $6)",
                          {25, 2950, 21, 20, 20, 20}};
const Statement kSweep{6, "baton_sweep", "SELECT baton.sweep($1, $2, $3)", {25, 23, 20}};

namespace {

using nlohmann::json;

std::optional<std::int64_t> micros(At at) {
  if (!at) return std::nullopt;
  return at->count();
}

std::int16_t mode_number(Mode mode) { return static_cast<std::int16_t>(mode); }
std::int64_t span(Millis value) { return value.count(); }

std::optional<std::string> metadata_text(const Request& request) {
  if (request.metadata.empty()) return std::nullopt;
  return json(request.metadata).dump();
}

// Nothing where the schema's version is not asked about.
std::optional<std::int64_t> version_of(const Request& request) {
  const bool matters =
      request.verb == Verb::acquire || request.verb == Verb::claim || request.verb == Verb::convert;
  if (!matters || request.targets[0].key == core::kSchemaKey) return std::nullopt;
  return request.schema_version;
}

std::string channel_of(const Request& request) {
  return request.channel.empty() ? std::string() : notify_channel(request.channel);
}

GrantId grant_of(const json& text) {
  std::string digits = text.get<std::string>();
  std::erase(digits, '-');
  return parse_grant_id(digits).value_or(GrantId{});
}

// As baton.shown writes it.
core::Holder holder_of(const json& row) {
  core::Holder holder;
  holder.grant = grant_of(row.at(0));
  holder.mode = static_cast<Mode>(row.at(1).get<int>());
  holder.token = row.at(2).get<Token>();
  holder.state = static_cast<core::HolderState>(row.at(3).get<int>());
  holder.since = core::StoreTime(row.at(4).get<std::int64_t>());
  holder.expires = core::StoreTime(row.at(5).get<std::int64_t>());
  holder.ttl = Millis(row.at(6).get<std::int64_t>());
  holder.revoked = row.at(7).get<bool>();
  holder.reason = row.at(8).get<std::string>();
  holder.predicate = row.at(9).get<std::string>();
  holder.owner = row.at(10).get<std::string>();
  if (!row.at(11).is_null()) holder.metadata = row.at(11).get<Metadata>();
  return holder;
}

core::Waiter waiter_of(const json& row, core::StoreTime now) {
  core::Waiter waiter;
  waiter.grant = grant_of(row.at(0));
  waiter.mode = static_cast<Mode>(row.at(1).get<int>());
  waiter.predicate = row.at(2).get<std::string>();
  waiter.owner = row.at(3).get<std::string>();
  waiter.converting = row.at(4).get<int>() == 0;
  waiter.stale = now + core::StoreTime(1);
  return waiter;
}

// The core shows holders and waiters; here they only become its own kind again.
LockInfo describe(const std::string& key, std::string_view holders, std::string_view waiters,
                  core::StoreTime now) {
  core::NameState state;
  if (!holders.empty()) {
    for (const auto& row : parse_json_or_throw(holders)) state.holders.push_back(holder_of(row));
  }
  if (!waiters.empty()) {
    for (const auto& row : parse_json_or_throw(waiters))
      state.waiters.push_back(waiter_of(row, now));
  }
  return core::describe(key, state, now, ~std::size_t{0});
}

}  // namespace

bool is_simple(const Request& request) {
  if (request.targets.size() != 1 || !request.change.empty()) return false;
  switch (request.verb) {
    case Verb::acquire: return !request.if_ordinal_below && version_of(request).has_value();
    case Verb::claim: return version_of(request).has_value();
    case Verb::renew: return true;
    case Verb::release: return request.to.empty();
    default: return false;
  }
}

bool is_noted(const Request& request) {
  if (request.targets.size() != 1) return false;
  if (request.verb == Verb::release) return !request.change.empty() && request.to.empty();
  return request.verb == Verb::acquire && version_of(request).has_value() &&
         (request.if_ordinal_below || !request.change.empty());
}

std::string notify_channel(std::string_view channel) {
  // Two 64-bit FNV-1a sums. A collision would only wake somebody for nothing.
  std::uint64_t a = 0xcbf29ce484222325ULL;
  std::uint64_t b = 0x9ae16a3b2f90404fULL;
  for (const char c : channel) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    b = (b + static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15ULL;
    b ^= b >> 29;
  }
  return "baton_" + to_string(GrantId{a, b});
}

namespace {

// Which grants of which names.
void add_grants(Params& params, const Batch& batch) {
  params.array(Type::text, batch, [](auto* r) { return std::string_view(r->targets[0].key); });
  params.array(Type::uuid, batch, [](auto* r) { return r->grant; });
}

void add_terms(Params& params, const Request& request, At at) {
  params.add(mode_number(request.targets[0].mode));
  params.add(span(request.ttl));
  params.add(span(request.at_least_for));
  params.add(version_of(request));
  params.add(std::string_view(request.predicate));
  params.add(std::string_view(request.owner));
  params.add(std::string_view(channel_of(request)));
  params.add(metadata_text(request));
  params.add(micros(at));
}

}  // namespace

Params acquire_free_params(const Request& request, At at) {
  Params params;
  params.reserve(512);
  params.add(std::string_view(request.targets[0].key));
  params.add(request.grant);
  add_terms(params, request, at);
  return params;
}

Params acquire_alike_params(const Batch& acquires, At at) {
  Params params;
  params.reserve(512 + 128 * acquires.size());
  add_grants(params, acquires);
  add_terms(params, *acquires[0], at);
  return params;
}

Params acquire_one_params(const Request& request, At at) {
  Params params;
  params.reserve(512);
  params.add(std::string_view(request.targets[0].key));
  params.add(request.grant);
  params.add(mode_number(request.targets[0].mode));
  params.add(span(request.ttl));
  params.add(span(request.queue_ttl));
  params.add(span(request.claim_within));
  params.add(span(request.at_least_for));
  params.add(version_of(request));
  params.add(std::string_view(request.predicate));
  params.add(std::string_view(request.owner));
  params.add(std::string_view(channel_of(request)));
  params.add(metadata_text(request));
  params.add(micros(at));
  return params;
}

Params release_one_params(const Request& request, At at) {
  Params params;
  params.reserve(128);
  params.add(std::string_view(request.targets[0].key));
  params.add(request.grant);
  params.add(micros(at));
  return params;
}

Params claim_one_params(const Request& request, At at) {
  Params params;
  params.reserve(128);
  params.add(std::string_view(request.targets[0].key));
  params.add(request.grant);
  params.add(mode_number(request.targets[0].mode));
  params.add(span(request.queue_ttl));
  params.add(version_of(request));
  params.add(micros(at));
  return params;
}

namespace {

void add_acquires(Params& params, const Batch& acquires) {
  add_grants(params, acquires);
  params.array(Type::int2, acquires, [](auto* r) { return mode_number(r->targets[0].mode); });
  params.array(Type::int8, acquires, [](auto* r) { return span(r->ttl); });
  params.array(Type::int8, acquires, [](auto* r) { return span(r->at_least_for); });
  params.array(Type::text, acquires, [](auto* r) { return std::string_view(r->predicate); });
  params.array(Type::text, acquires, [](auto* r) { return std::string_view(r->owner); });
  params.array(Type::text, acquires, [](auto* r) { return channel_of(*r); });
  params.array(Type::text, acquires, [](auto* r) { return metadata_text(*r); });
  params.array(Type::int8, acquires, [](auto* r) { return version_of(*r); });
}

}  // namespace

Params quick_params(const Batch& acquires, At at) {
  Params params;
  params.reserve(512 * (1 + acquires.size()));
  add_acquires(params, acquires);
  params.add(micros(at));
  return params;
}

Params claim_many_params(const Batch& claims, At at) {
  Params params;
  params.reserve(128 * (1 + claims.size()));
  add_grants(params, claims);
  params.array(Type::int8, claims, [](auto* r) { return version_of(*r); });
  params.add(micros(at));
  return params;
}

Params quick_noted_params(const Batch& acquires, const Batch& releases, At at) {
  Params params;
  params.reserve(1024 * (1 + acquires.size() + releases.size()));
  const auto ordinal = [](const Request* r) { return r->change.ordinal; };
  const auto text = [](const Request* r) { return r->change.text; };
  add_acquires(params, acquires);
  params.array(Type::int8, acquires, [](auto* r) { return r->if_ordinal_below; });
  params.array(Type::int8, acquires, ordinal);
  params.array(Type::text, acquires, text);
  add_grants(params, releases);
  params.array(Type::int8, releases, ordinal);
  params.array(Type::text, releases, text);
  params.add(micros(at));
  return params;
}

Params grants_params(const Batch& batch, At at) {
  Params params;
  params.reserve(128 * (1 + batch.size()));
  add_grants(params, batch);
  params.add(micros(at));
  return params;
}

Params apply_params(const Batch& requests, At at) {
  std::vector<const Target*> targets;
  for (const Request* request : requests) {
    for (const Target& target : request->targets) targets.push_back(&target);
  }
  Params params;
  params.reserve(1024 * (1 + requests.size()));
  const auto each = [&](Type type, auto get) { params.array(type, requests, get); };
  each(Type::int2, [](auto* r) { return static_cast<std::int16_t>(r->verb); });
  each(Type::uuid,
       [](auto* r) { return r->grant.empty() ? std::nullopt : std::optional<GrantId>(r->grant); });
  each(Type::int4, [](auto* r) { return static_cast<std::int32_t>(r->targets.size()); });
  params.array(Type::text, targets, [](auto* target) { return std::string_view(target->key); });
  params.array(Type::int2, targets, [](auto* target) { return mode_number(target->mode); });
  each(Type::int8, [](auto* r) { return span(r->ttl); });
  each(Type::int8, [](auto* r) { return span(r->queue_ttl); });
  each(Type::int8, [](auto* r) { return span(r->claim_within); });
  each(Type::int8, [](auto* r) { return span(r->at_least_for); });
  each(Type::int8, [](auto* r) { return span(r->tombstone_ttl); });
  each(Type::int8, [](auto* r) { return r->if_ordinal_below; });
  each(Type::int8, [](auto* r) { return r->change.ordinal; });
  each(Type::text, [](auto* r) { return r->change.text; });
  each(Type::int8, [](auto* r) { return version_of(*r); });
  each(Type::text, [](auto* r) { return std::string_view(r->predicate); });
  each(Type::text, [](auto* r) { return std::string_view(r->owner); });
  each(Type::text, [](auto* r) { return channel_of(*r); });
  each(Type::text, [](auto* r) { return metadata_text(*r); });
  each(Type::text, [](auto* r) { return std::string_view(r->to); });
  each(Type::text, [](auto* r) { return std::string_view(r->reason); });
  each(Type::boolean,
       [](auto* r) { return r->verb == Verb::break_ ? r->immediately : r->converting; });
  params.add(micros(at));
  return params;
}

Reply granted_reply(const Rows& rows, int row, int token) {
  Reply reply;
  reply.outcome = Outcome::granted;
  reply.tokens = {static_cast<Token>(rows.integer(row, token))};
  reply.note = {rows.integer(row, token + 1), std::string(rows.text(row, token + 2))};
  return reply;
}

Reply quick_reply(const Rows& rows, int row) {
  if (!rows.null(row, 1)) return granted_reply(rows, row, 1);
  Reply reply;
  reply.outcome = Outcome::done;
  return reply;
}

std::pair<std::size_t, Reply> reply_of(const Rows& rows, int row, const Batch& requests) {
  // The columns of baton.reply.
  enum { ord, outcome, tokens, ordinal, text, ends, now_us, message, holders, waiters, waiting };
  const auto index = static_cast<std::size_t>(rows.integer(row, ord) - 1);
  const Request& request = *requests.at(index);
  const core::StoreTime now(rows.integer(row, now_us));
  Reply reply;
  reply.outcome = static_cast<Outcome>(rows.integer(row, outcome));
  reply.message = rows.text(row, message);
  const Note note{rows.integer(row, ordinal), std::string(rows.text(row, text))};
  if (request.verb == Verb::get) {
    reply.info =
        describe(request.targets[0].key, rows.text(row, holders), rows.text(row, waiters), now);
    reply.info->note = note;
    return {index, std::move(reply)};
  }
  reply.note = note;
  for (const std::int64_t token : rows.integers(row, tokens)) {
    reply.tokens.push_back(static_cast<Token>(token));
  }
  if (!rows.null(row, holders)) {
    reply.holders = describe({}, rows.text(row, holders), {}, now).holders;
  }
  if (!rows.null(row, ends)) {
    reply.retry_after = std::chrono::ceil<Millis>(core::StoreTime(rows.integer(row, ends)) - now);
  }
  return {index, std::move(reply)};
}

LockInfo info_of(const Rows& rows, int row) {
  enum { key, ordinal, text, holders, waiters, waiting, now_us };
  LockInfo info = describe(std::string(rows.text(row, key)), rows.text(row, holders),
                           rows.text(row, waiters), core::StoreTime(rows.integer(row, now_us)));
  info.waiting = static_cast<std::size_t>(rows.integer(row, waiting));
  info.note = {rows.integer(row, ordinal), std::string(rows.text(row, text))};
  return info;
}

}  // namespace baton::store::postgres
