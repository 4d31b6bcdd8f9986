#include "core/verbs.h"

namespace baton::core::verbs {

Reply outcome(Outcome outcome, std::string message) {
  Reply reply;
  reply.outcome = outcome;
  reply.message = std::move(message);
  return reply;
}

Reply granted(const Step& step, Note found) {
  Reply reply = outcome(Outcome::granted);
  reply.note = std::move(found);
  for (NameState* state : step.states) {
    reply.tokens.push_back(find_holder(*state, step.request.grant)->token);
  }
  return reply;
}

std::optional<std::string> not_holding(const Step& step) {
  for (NameState* state : step.states) {
    const Holder* holder = find_holder(*state, step.request.grant);
    if (holder == nullptr || holder->expires <= step.now || holder->state == HolderState::parked) {
      return "the grant has ended";
    }
    if (holder->revoked) return "revoked: " + holder->reason;
  }
  return std::nullopt;
}

void extend(Step& step, NameState& state, Holder& holder) {
  holder.expires = std::max(holder.expires, step.now + StoreTime(holder.ttl));
  state.dirty = true;
  step.effects.durable = true;
}

void make_change(NameState& state, const NoteChange& change, Effects& effects) {
  if (change.empty()) return;
  if (change.ordinal) state.note.ordinal = *change.ordinal;
  if (change.text) state.note.text = *change.text;
  state.dirty = true;
  effects.durable = true;
}

}  // namespace baton::core::verbs
