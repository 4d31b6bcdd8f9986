#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "store/postgres_advisory/grants.h"

namespace baton::store::postgres_advisory {

// One batch on its way through, under the store's lock. The server decides who holds what; what it
// does not know, such as when a waiter is stale, is judged as core/apply.h does.
class Verbs {
 public:
  // No request is begun after `send_by`.
  Verbs(const AdvisorySettings& settings, Grants& grants, ServerQueries& queries, Deadline send_by,
        Deadline deadline)
      : settings_(settings),
        grants_(grants),
        queries_(queries),
        send_by_(send_by),
        deadline_(deadline) {}

  // Sessions that the acquires of this batch may use, and why there are no more.
  void give_sessions(std::vector<std::unique_ptr<Session>> sessions, std::optional<Error> shortage);
  [[nodiscard]] std::vector<std::unique_ptr<Session>> unused_sessions() {
    return std::exchange(sessions_, {});
  }

  // Looks at all names that the requests will have to know, in one round trip.
  Result<void> look_ahead(std::span<const Request* const> requests);

  Result<Reply> apply(const Request& request);

  // Acquires of different names; the schema's is not among them. What is free is asked of all
  // sessions before the first answer is waited for.
  std::vector<Result<Reply>> acquire(std::span<const Request* const> requests);

  // Releases of different names, likewise.
  std::vector<Result<Reply>> release(std::span<const Request* const> requests);

  // Renewals, all sent before the first answer is waited for. One that is not answered in time is
  // busy. An error if it has a note, which may be written all the same.
  Result<void> renew(std::span<const Request* const> requests, std::span<Reply*> replies);

 private:
  // An acquire is answered, or what it asked of a session is under way.
  struct Taking {
    Request request;
    Grants::Taking asked;
    bool looked = false;  // that the name seems to be free is not only a guess
  };
  using Begun = std::variant<Reply, Taking>;
  [[nodiscard]] bool goes_unseen(const Request& request) const;
  Result<Begun> begin_acquire(const Request& request);
  Result<Begun> begin_take(const Request& request, bool looked);
  Result<std::optional<Reply>> finish_acquire(Result<Begun> begun);
  Result<Reply> claim(const Request& request);

  // A release is answered, or what it asked of its session is under way.
  struct Releasing {
    const Request* request;
    std::variant<Result<Reply>, Grants::Ending> begun;
  };
  Releasing begin_release(const Request& request);
  Result<Reply> finish_release(const Releasing& releasing);
  Result<Reply> cancel(const Request& request);
  Result<Reply> break_holders(const Request& request);
  Result<Reply> get(const Request& request);

  Result<Reply> take_again(GrantEntry& entry, const Request& request);
  Result<Reply> claim_handed(GrantEntry& entry, const Request& request);
  struct Beat {
    GrantEntry* entry;
    Reply* reply;
    bool matters;  // its asker cannot go on as if nothing had happened
    const NoteChange* change;
  };
  Result<Reply> beat(GrantEntry& entry);
  Result<void> collect(std::vector<Beat>& beats, Deadline limit);
  Result<Reply> after_beat(GrantEntry& entry, const Result<TermReply>& term,
                           const NoteChange& change);
  [[nodiscard]] Result<Reply> gone(const Request& request, const std::string& why) const;
  Result<Reply> superseded(GrantEntry* entry);
  Result<bool> superseded_itself(const Request& request, const ServerView& seen);
  Result<Reply> wait(const Request& request, const ServerView& seen, Reply blocked);
  Result<std::unique_ptr<Session>> session();

  Result<void> look_at(const std::vector<const Request*>& requests);
  [[nodiscard]] bool is_handed(const Request& request) const;
  Result<const ServerView*> seen(const std::string& key);
  Result<std::optional<Reply>> denied(const Request& request);
  void settle(const std::string& key);
  void changed(const std::string& key);
  // Who is in the way of a request; the outcome is busy if somebody is, else granted.
  [[nodiscard]] Reply obstacle(const Request& request, const ServerView& seen) const;

  const AdvisorySettings& settings_;
  Grants& grants_;
  ServerQueries& queries_;
  const Deadline send_by_;
  const Deadline deadline_;
  std::map<std::string, ServerView> seen_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::optional<Error> shortage_;
};

// Whether an acquire, claim, get or break: those look at more than their own grant.
[[nodiscard]] bool looks_around(const Request& request);

}  // namespace baton::store::postgres_advisory
