#include "harness.h"

#include <sstream>

namespace baton::test {

Request acquire(std::uint64_t grant_number, std::vector<Target> targets, Millis queue_ttl) {
  Request request;
  request.verb = Verb::acquire;
  request.grant = grant(grant_number);
  request.targets = std::move(targets);
  request.predicate = "holding";
  request.owner = "node-" + std::to_string(grant_number);
  request.channel = "process-" + std::to_string(grant_number);
  request.ttl = kTtl;
  request.queue_ttl = queue_ttl;
  request.claim_within = kClaimWithin;
  return request;
}

Request acquire(std::uint64_t grant_number, const std::string& key, Mode mode, Millis queue_ttl) {
  return acquire(grant_number, {{key, mode}}, queue_ttl);
}

Request same_targets(Verb verb, const Request& request) {
  Request other;
  other.verb = verb;
  other.grant = request.grant;
  other.targets = request.targets;
  other.schema_version = request.schema_version;
  return other;
}

std::string describe(const Request& request) {
  std::ostringstream out;
  out << to_string(request.verb) << " grant=" << request.grant.low << " [";
  for (const Target& target : request.targets)
    out << ' ' << target.key << '=' << short_name(target.mode);
  out << " ]";
  const auto span = [&](const char* name, Millis value) {
    if (value.count() != 0) out << ' ' << name << '=' << value.count();
  };
  span("ttl", request.ttl);
  span("ticket", request.queue_ttl);
  span("handoff", request.claim_within);
  span("at_least_for", request.at_least_for);
  span("tombstone", request.tombstone_ttl);
  if (request.if_ordinal_below) out << " if_ordinal_below=" << *request.if_ordinal_below;
  if (request.change.ordinal) out << " set_ordinal=" << *request.change.ordinal;
  if (request.change.text) out << " note='" << *request.change.text << "'";
  if (!request.to.empty()) out << " to=" << request.to;
  if (!request.reason.empty()) out << " reason=" << request.reason;
  if (request.immediately) out << " immediately";
  if (request.converting) out << " converting";
  if (request.schema_version != 0) out << " schema=" << request.schema_version;
  return out.str();
}

namespace {

void show(std::ostream& out, const HolderInfo& holder) {
  out << " {grant=" << holder.grant.low << ' ' << short_name(holder.mode)
      << " token=" << holder.token << " ttl=" << holder.ttl.count()
      << " held_for=" << holder.held_for.count() << " expires_in=" << holder.expires_in.count()
      << (holder.claimed ? "" : " handed") << (holder.released ? " parked" : "")
      << (holder.revoked ? " revoked" : "") << ' ' << holder.owner << '}';
}

}  // namespace

std::string describe(const Reply& reply) {
  std::ostringstream out;
  out << to_string(reply.outcome);
  for (const Token token : reply.tokens) out << " token=" << token;
  if (reply.note != Note{}) out << " note=" << reply.note.ordinal << "/'" << reply.note.text << "'";
  if (reply.retry_after.count() != 0) out << " retry_after=" << reply.retry_after.count();
  for (const HolderInfo& holder : reply.holders) show(out, holder);
  if (!reply.message.empty()) out << " (" << reply.message << ")";
  if (reply.info) {
    out << " info " << reply.info->key << " waiting=" << reply.info->waiting
        << " note=" << reply.info->note.ordinal << "/'" << reply.info->note.text << "'";
    for (const HolderInfo& holder : reply.info->holders) show(out, holder);
    for (const WaiterInfo& waiter : reply.info->waiters) {
      out << " <" << waiter.grant.low << ' ' << short_name(waiter.mode)
          << (waiter.converting ? " converting>" : ">");
    }
  }
  return out.str();
}

}  // namespace baton::test
