#include "store/postgres/codec.h"

#include <algorithm>

#include "core/apply.h"
#include "json/json.h"

namespace baton::store::postgres {
namespace {

using nlohmann::json;

// Columns can hold any number, and times are added up: clamp, so that no sum overflows.
core::StoreTime time_of(std::int64_t micros) {
  return std::clamp(core::StoreTime(micros), -core::kFurthestStoredTime, core::kFurthestStoredTime);
}
Millis span_of(std::int64_t millis) {
  return std::clamp(Millis(millis), Millis(0), core::kLongestStoredSpan);
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
  holder.since = time_of(row.at(4).get<std::int64_t>());
  holder.expires = time_of(row.at(5).get<std::int64_t>());
  holder.ttl = span_of(row.at(6).get<std::int64_t>());
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

// Turns rows into the core's state, and lets the core describe that.
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

Millis time_until(core::StoreTime end, core::StoreTime now) {
  return std::chrono::ceil<Millis>(end - now);
}

// The columns of the fast paths but `busy`; statements that cannot give a value leave it out.
struct Column {
  enum { key, token, note_ordinal, note_text, now_us, holder };
};

Reply busy(core::Holder holder, core::StoreTime now) {
  core::NameState state;
  state.holders.push_back(std::move(holder));
  Reply reply;
  reply.outcome = Outcome::busy;
  reply.retry_after = time_until(state.holders[0].expires, now);
  reply.holders = core::describe({}, state, now, 0).holders;
  return reply;
}

Reply granted(const Rows& rows, int row) {
  Reply reply;
  reply.outcome = Outcome::granted;
  reply.tokens = {static_cast<Token>(rows.integer(row, Column::token))};
  reply.note = {rows.integer(row, Column::note_ordinal),
                std::string(rows.text(row, Column::note_text))};
  return reply;
}

}  // namespace

Reply acquire_reply(const Rows& rows, int row) {
  if (!rows.null(row, Column::token)) return granted(rows, row);
  return busy(holder_of(parse_json_or_throw(rows.text(row, Column::holder))),
              core::StoreTime(rows.integer(row, Column::now_us)));
}

Reply busy_reply(const Rows& rows, int row) {
  enum {
    now_us,
    grant,
    token,
    state,
    since,
    expires,
    ttl,
    revoked,
    reason,
    predicate,
    owner,
    meta
  };
  core::Holder holder;
  holder.grant = rows.uuid(row, grant);
  holder.mode = Mode::X;
  holder.token = static_cast<Token>(rows.integer(row, token));
  holder.state = static_cast<core::HolderState>(rows.integer(row, state));
  holder.since = time_of(rows.integer(row, since));
  holder.expires = time_of(rows.integer(row, expires));
  holder.ttl = span_of(rows.integer(row, ttl));
  holder.revoked = rows.integer(row, revoked) != 0;
  holder.reason = rows.text(row, reason);
  holder.predicate = rows.text(row, predicate);
  holder.owner = rows.text(row, owner);
  if (!rows.null(row, meta)) {
    const json metadata = parse_json_or_throw(rows.text(row, meta));
    if (!metadata.is_null()) holder.metadata = metadata.get<Metadata>();
  }
  return busy(std::move(holder), core::StoreTime(rows.integer(row, now_us)));
}

Reply grant_reply(const Rows& rows, int row) {
  if (!rows.null(row, Column::token)) return granted(rows, row);
  Reply reply;
  reply.outcome = Outcome::done;
  return reply;
}

Reply get_reply(const Rows& rows, int row) {
  Reply reply;
  reply.outcome = Outcome::done;
  reply.info = lock_info(rows, row);
  return reply;
}

std::pair<std::size_t, Reply> apply_reply(const Rows& rows, int row, const Batch& requests) {
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
    reply.retry_after = time_until(time_of(rows.integer(row, ends)), now);
  }
  return {index, std::move(reply)};
}

LockInfo lock_info(const Rows& rows, int row) {
  enum { key, ordinal, text, holders, waiters, waiting, now_us };
  LockInfo info = describe(std::string(rows.text(row, key)), rows.text(row, holders),
                           rows.text(row, waiters), core::StoreTime(rows.integer(row, now_us)));
  info.waiting = static_cast<std::size_t>(rows.integer(row, waiting));
  info.note = {rows.integer(row, ordinal), std::string(rows.text(row, text))};
  return info;
}

}  // namespace baton::store::postgres
