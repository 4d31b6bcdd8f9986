#include "store/redis/answer.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "core/apply.h"
#include "store/redis/msgpack.h"

namespace baton::store::redis {
namespace {

std::int64_t ordinal_in(std::string_view digits) {
  std::int64_t ordinal = 0;
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (problem != std::errc{} || end != digits.data() + digits.size()) {
    throw std::runtime_error("a broken ordinal");
  }
  return ordinal;
}

std::optional<std::string_view> optional_text(Unpacker& in) {
  if (in.is_flag()) {
    in.flag();
    return std::nullopt;
  }
  return in.text();
}

std::optional<std::int64_t> optional_ordinal(Unpacker& in) {
  const auto digits = optional_text(in);
  return digits ? std::optional(ordinal_in(*digits)) : std::nullopt;
}

Mode mode_in(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(kAllModes.size())) {
    throw std::runtime_error("an unknown mode");
  }
  return static_cast<Mode>(number);
}

void read_claimant(Unpacker& in, core::Claimant& who) {
  who.if_ordinal_below = optional_ordinal(in);
  who.change.ordinal = optional_ordinal(in);
  if (const auto text = optional_text(in)) who.change.text = *text;
  who.predicate = in.text();
  who.owner = in.text();
  who.channel = in.text();
  Unpacker metadata(in.text());
  while (!metadata.done()) {
    const std::string name(metadata.text());
    who.metadata[name] = metadata.text();
  }
}

core::StoreTime time_in(Unpacker& in) {
  const core::StoreTime time(in.number());
  if (!core::is_stored_time(time)) throw std::runtime_error("a time out of range");
  return time;
}

Millis span_in(Unpacker& in) {
  const Millis span(in.number());
  if (!core::is_stored_span(span)) throw std::runtime_error("a time span out of range");
  return span;
}

core::Holder read_holder(Unpacker& in) {
  in.array_of(16);
  core::Holder holder;
  holder.token = static_cast<Token>(in.number());
  holder.since = time_in(in);
  holder.expires = time_in(in);
  holder.ttl = span_in(in);
  holder.at_least_for = span_in(in);
  holder.grant = grant_in(in.text());
  holder.mode = mode_in(in.number());
  const auto state = in.number();
  if (state < 0 || state > 2) throw std::runtime_error("an unknown state");
  holder.state = static_cast<core::HolderState>(state);
  if (const auto reason = optional_text(in)) {
    holder.revoked = true;
    holder.reason = *reason;
  }
  read_claimant(in, holder);
  return holder;
}

core::Waiter read_waiter(Unpacker& in) {
  in.array_of(16);
  core::Waiter waiter;
  waiter.turn = static_cast<std::uint64_t>(in.number());
  waiter.stale = time_in(in);
  waiter.claim_within = span_in(in);
  waiter.ttl = span_in(in);
  waiter.at_least_for = span_in(in);
  waiter.grant = grant_in(in.text());
  waiter.mode = mode_in(in.number());
  waiter.alone = in.flag();
  waiter.converting = in.flag();
  read_claimant(in, waiter);
  return waiter;
}

Reply denied(const Request& request, std::string_view problem) {
  std::string names;
  for (const Target& target : request.targets)
    names += (names.empty() ? "'" : ", '") + target.key + "'";
  Reply reply;
  reply.outcome = Outcome::denied;
  reply.message = "what the store knows of " + names + " is damaged: " + std::string(problem);
  return reply;
}

Reply described(const Request& request, std::string_view value, core::StoreTime now) {
  Reply reply;
  reply.outcome = Outcome::done;
  try {
    const auto state = value.empty() ? core::NameState{} : read_value(value);
    reply.info = core::describe(request.targets[0].key, state, now, ~std::size_t{0});
  } catch (const std::exception& problem) {
    return denied(request, problem.what());
  }
  return reply;
}

Reply refused(const Request& request, std::string_view problem) {
  if (problem == "NOTOKENS") {
    Reply reply;
    reply.message =
        "the token counter of this region or the server's clock has come near 2^52, where tokens "
        "would repeat; docs/stores/redis.md says how to go on";
    return reply;
  }
  return denied(request, problem == "WRONGTYPE" ? "there is something else in Redis under its key"
                                                : "its value in Redis is not Baton's, or cut");
}

// [outcome, tokens, ordinal, text, holders, ends, message]
Reply read_long(Unpacker& in, std::int64_t outcome, core::StoreTime now) {
  if (outcome < 0 || outcome > static_cast<std::int64_t>(Outcome::done)) {
    throw std::runtime_error("an unknown outcome");
  }
  Reply reply;
  reply.outcome = static_cast<Outcome>(outcome);
  for (auto left = in.array(); left > 0; --left) {
    reply.tokens.push_back(static_cast<Token>(in.number()));
  }
  reply.note.ordinal = ordinal_in(in.text());
  reply.note.text = in.text();
  core::NameState state;
  for (auto left = in.array(); left > 0; --left) state.holders.push_back(read_holder(in));
  if (!state.holders.empty()) reply.holders = core::describe({}, state, now, 0).holders;
  const std::int64_t ends = in.number();
  if (ends >= 0) {
    reply.retry_after =
        std::chrono::ceil<Millis>(std::max(core::StoreTime(ends) - now, core::StoreTime{0}));
  }
  reply.message = in.text();
  return reply;
}

Reply read_reply(Unpacker& in, const Request& request, core::StoreTime now) {
  const auto size = in.array();
  const auto tag = in.number();
  if (size == 7) return read_long(in, tag, now);
  Reply reply;
  if (size == 1 && tag == 7) {
    reply.outcome = Outcome::done;
  } else if (size == 2 && tag == 0) {
    reply.outcome = Outcome::granted;
    reply.tokens = {static_cast<Token>(in.number())};
  } else if (size == 2 && tag == 8) {
    return described(request, in.text(), now);
  } else if (size == 2 && tag == 9) {
    return refused(request, in.text());
  } else {
    throw std::runtime_error("an unknown kind of reply");
  }
  return reply;
}

}  // namespace

Answer read_answer(std::string_view bytes, const std::vector<const Request*>& asked) {
  Unpacker in(bytes);
  Answer answer;
  answer.server_time = in.number();
  answer.late = in.done();
  if (answer.late) return answer;
  const core::StoreTime now(in.number());
  for (const Request* request : asked) answer.replies.push_back(read_reply(in, *request, now));
  if (!in.done()) throw std::runtime_error("more replies than requests");
  return answer;
}

core::NameState read_value(std::string_view value) {
  if (!value.starts_with('0') && !value.starts_with('1')) {
    throw std::runtime_error("a value of an unknown kind");
  }
  Unpacker in(value.substr(1));
  in.array_of(5);
  core::NameState state;
  for (auto left = in.array(); left > 0; --left) state.holders.push_back(read_holder(in));
  for (auto left = in.array(); left > 0; --left) state.waiters.push_back(read_waiter(in));
  for (auto left = in.array(); left > 0; --left) {
    in.array_of(2);
    const GrantId grant = grant_in(in.text());
    state.tombstones.push_back({grant, time_in(in)});
  }
  state.note.ordinal = ordinal_in(in.text());
  state.note.text = in.text();
  return state;
}

}  // namespace baton::store::redis
