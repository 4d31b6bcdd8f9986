// Renewals: beats on the sessions of their grants.

#include <algorithm>

#include <poll.h>

#include "store/postgres_advisory/answers.h"
#include "store/postgres_advisory/verbs.h"

namespace baton::store::postgres_advisory {
namespace {

// Waits until one of them has something to say; false if the deadline came first.
bool wait_for_any(std::vector<pollfd>& sockets, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - BootClock::now());
    if (left <= Millis{0}) return false;
    const auto most = std::min<std::int64_t>(left.count(), 60'000);
    if (poll(sockets.data(), sockets.size(), static_cast<int>(most)) > 0) return true;
  }
}

}  // namespace

// For a grant that is there: a caller that is told busy would think that it is not.
Result<Reply> Verbs::beat(GrantEntry& entry) {
  if (auto sent = entry.session->send_beat(entry.lock, {}, deadline_); !sent) {
    if (entry.session->usable()) return sent.error();
    return after_beat(entry, sent.error(), {});
  }
  Reply reply;
  const NoteChange none;
  std::vector<Beat> alone{{&entry, &reply, true, &none}};
  if (auto heard = collect(alone, grants_.patience(deadline_, Session::CallKind::to_look, true));
      !heard)
    return heard.error();
  return reply;
}

Result<Reply> Verbs::after_beat(GrantEntry& entry, const Result<TermReply>& term,
                                const NoteChange& change) {
  if (!term) {
    if (entry.session->usable()) return outcome(Outcome::busy, term.error().message);
    const std::string why = "its session with the server has ended: " + term.error().message;
    Request renew;
    renew.verb = Verb::renew;
    renew.grant = entry.lock.grant;
    renew.change = change;
    grants_.lose(entry, why);
    return gone(renew, why);
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

// Each is answered when its own session is. A late session is reported as such, and read before its
// next beat.
Result<void> Verbs::collect(std::vector<Beat>& beats, Deadline limit) {
  std::optional<Error> problem;
  std::vector<pollfd> sockets;
  for (const Beat& beat : beats) {
    sockets.push_back({beat.entry->session->socket(), POLLIN, POLLIN});  // it may be there already
  }
  do {
    std::size_t left = 0;
    for (std::size_t i = 0; i < beats.size(); ++i) {
      if (sockets[i].revents != 0) {
        if (const auto term = beats[i].entry->session->poll_beat()) {
          auto reply = after_beat(*beats[i].entry, *term, *beats[i].change);
          if (!reply) problem = reply.error();
          *beats[i].reply =
              reply ? std::move(*reply) : outcome(Outcome::busy, reply.error().message);
          continue;
        }
      }
      beats[left] = beats[i];
      sockets[left++] = sockets[i];
    }
    beats.resize(left);
    sockets.resize(left);
  } while (!beats.empty() && wait_for_any(sockets, limit));
  const std::string silence = "its session does not answer";
  const bool doubt =
      std::any_of(beats.begin(), beats.end(), [](const Beat& late) { return late.matters; });
  for (const Beat& late : beats) *late.reply = outcome(Outcome::busy, silence);
  beats.clear();
  if (doubt) return Error{.message = silence, .retryable = true, .in_doubt = true};
  if (problem) return *problem;
  return {};
}

Result<void> Verbs::renew(std::span<const Request* const> requests, std::span<Reply*> replies) {
  std::vector<Beat> sent;
  Result<void> done;
  const bool notes = std::any_of(requests.begin(), requests.end(),
                                 [](const Request* one) { return !one->change.empty(); });
  const Deadline limit = grants_.patience(
      deadline_, notes ? Session::CallKind::to_write : Session::CallKind::to_look, true);
  const auto collect_all = [&] {
    if (auto heard = collect(sent, limit); !heard) done = heard;
  };
  const auto answer = [&](std::size_t i, const Result<Reply>& reply) {
    if (!reply) done = reply.error();
    *replies[i] = reply ? *reply : outcome(Outcome::busy, reply.error().message);
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = *requests[i];
    const std::string& key = request.targets[0].key;
    const bool under_way = std::any_of(sent.begin(), sent.end(),
                                       [&](const Beat& one) { return one.entry->lock.key == key; });
    if (under_way) collect_all();
    GrantEntry* entry = grants_.table().find(key, request.grant);
    if (entry == nullptr || !entry->holds || entry->holder.expires <= grants_.now()) {
      answer(i, gone(request, grants_.why_lost(request.grant)));
    } else if (entry->holder.revoked) {
      *replies[i] = lost("revoked: " + entry->holder.reason);
    } else if (entry->holder.state == HolderState::handed) {
      *replies[i] = lost("not claimed yet");
    } else if (BootClock::now() >= (request.change.empty() ? limit : std::min(limit, send_by_))) {
      *replies[i] = outcome(Outcome::busy, "no time was left for it");
    } else if (auto begun = entry->session->send_beat(entry->lock, request.change, deadline_);
               !begun) {
      answer(i, after_beat(*entry, begun.error(), request.change));
    } else {
      sent.push_back({entry, replies[i], !request.change.empty(), &request.change});
    }
    if (!request.change.empty()) changed(key);
  }
  collect_all();
  return done;
}

}  // namespace baton::store::postgres_advisory
