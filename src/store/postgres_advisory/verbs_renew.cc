// Renewals: beats on the sessions of their grants.

#include <algorithm>

#include "store/postgres_advisory/answers.h"
#include "store/postgres_advisory/verbs.h"

namespace baton::store::postgres_advisory {

Result<Reply> Verbs::beat(Entry& entry, const NoteChange& change) {
  if (auto sent = entry.session->send_beat(entry.lock, change, deadline_); !sent) {
    if (!entry.session->usable()) {
      grants_.lose(entry, sent.error().message);
      return lost(sent.error().message);
    }
    return outcome(Outcome::busy, sent.error().message);
  }
  return after_beat(entry, entry.session->collect_beat(deadline_));
}

Reply Verbs::after_beat(Entry& entry, const Result<Term>& term) {
  if (!term) {
    if (entry.session->usable()) return outcome(Outcome::busy, term.error().message);
    const std::string why = "its session with the server has ended: " + term.error().message;
    grants_.lose(entry, why);
    return lost(why);
  }
  if (term->took == Took::revoked) {
    entry.holder.revoked = true;
    entry.holder.reason = term->reason;
    return lost("revoked: " + term->reason);
  }
  if (term->took != Took::taken) {
    grants_.lose(entry, "the grant has ended");
    return lost("the grant has ended");
  }
  entry.holder.expires =
      std::max(entry.holder.expires, grants_.now() + StoreTime(entry.holder.ttl));
  return granted(entry, term->note);
}

void Verbs::renew(std::span<const Request* const> requests, std::span<Reply*> replies) {
  struct Sent {
    std::string key;
    GrantId grant;
    Reply* reply;
  };
  std::vector<Sent> sent;
  const auto collect = [&] {
    for (const Sent& one : sent) {
      Entry* entry = grants_.book().find(one.key, one.grant);
      *one.reply = after_beat(*entry, entry->session->collect_beat(deadline_));
    }
    sent.clear();
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = *requests[i];
    const std::string& key = request.asks[0].key;
    const bool under_way =
        std::any_of(sent.begin(), sent.end(), [&](const Sent& one) { return one.key == key; });
    if (under_way) collect();
    Entry* entry = grants_.book().find(key, request.grant);
    if (entry == nullptr || !entry->holds || entry->holder.expires <= grants_.now()) {
      *replies[i] = lost(grants_.why_lost(request.grant));
    } else if (entry->holder.revoked) {
      *replies[i] = lost("revoked: " + entry->holder.reason);
    } else if (entry->holder.state == HolderState::handed) {
      *replies[i] = lost("not claimed yet");
    } else if (auto begun = entry->session->send_beat(entry->lock, request.change, deadline_);
               !begun) {
      *replies[i] = after_beat(*entry, begun.error());
    } else {
      sent.push_back({key, request.grant, replies[i]});
    }
    if (!request.change.empty()) changed(key);
  }
  collect();
}

}  // namespace baton::store::postgres_advisory
