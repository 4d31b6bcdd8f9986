#include "core/apply.h"

#include "core/verbs.h"

namespace baton::core {
namespace {

using verbs::outcome;
using verbs::Step;

Reply look(Step& step) {
  Reply reply = outcome(Outcome::done);
  reply.info = describe(step.request.targets[0].key, *step.states[0], step.now, ~std::size_t{0});
  return reply;
}

bool schema_matters(Verb verb) {
  return verb == Verb::acquire || verb == Verb::claim || verb == Verb::convert;
}

Reply dispatch(Step& step) {
  switch (step.request.verb) {
    case Verb::acquire: return verbs::acquire(step);
    case Verb::claim: return verbs::claim(step);
    case Verb::renew: return verbs::renew(step);
    case Verb::convert: return verbs::convert(step);
    case Verb::release: return verbs::release(step);
    case Verb::cancel: return verbs::cancel(step);
    case Verb::break_: return verbs::break_holders(step);
    case Verb::get: return look(step);
  }
  return outcome(Outcome::invalid, "unknown verb");
}

}  // namespace

Claimant claimant_of(const Request& request) {
  Claimant claimant;
  claimant.grant = request.grant;
  claimant.ttl = request.ttl;
  claimant.at_least_for = request.at_least_for;
  claimant.if_ordinal_below = request.if_ordinal_below;
  claimant.change = request.change;
  claimant.predicate = request.predicate;
  claimant.owner = request.owner;
  claimant.channel = request.channel;
  claimant.metadata = request.metadata;
  return claimant;
}

std::int64_t schema_version(const LockTable& table) {
  const auto it = table.names.find(std::string(kSchemaKey));
  return it == table.names.end() ? 0 : it->second.note.ordinal;
}

Reply apply(LockTable& table, const Request& request, StoreTime now, Effects& effects) {
  if (auto rule = broken_rule(request)) return outcome(Outcome::invalid, std::move(*rule));
  if (schema_matters(request.verb) && request.targets[0].key != kSchemaKey) {
    const auto version = schema_version(table);
    if (version != request.schema_version) {
      return outcome(Outcome::denied, "the store has schema version " + std::to_string(version) +
                                          ", this client " +
                                          std::to_string(request.schema_version));
    }
  }
  Step step{table, request, now, effects, {}};
  step.states.reserve(request.targets.size());
  for (const Target& target : request.targets) step.states.push_back(&table.names[target.key]);
  return dispatch(step);
}

}  // namespace baton::core
