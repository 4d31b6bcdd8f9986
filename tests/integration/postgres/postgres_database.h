#pragma once

// What the PostgreSQL tests share: requests, beside a database a test.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/postgres/postgres_store.h"
#include "store/postgres/statements.h"
#include "support/postgres_database.h"

namespace baton::test {

inline Deadline in(Millis span) { return BootClock::now() + span; }
inline Deadline soon() { return in(std::chrono::seconds(30)); }

inline GrantId grant(std::uint64_t number) { return {0xBA70, number}; }

inline Request request(Verb verb, std::uint64_t number, const std::string& key,
                       Mode mode = Mode::X) {
  Request request;
  request.verb = verb;
  request.grant = grant(number);
  request.targets = {{key, mode}};
  request.predicate = "holding";
  request.owner = "node-" + std::to_string(number);
  request.channel = "process-" + std::to_string(number);
  request.ttl = Millis(30'000);
  request.claim_within = Millis(5'000);
  return request;
}

inline Request acquire(std::uint64_t number, const std::string& key, Millis queue_ttl = Millis{0}) {
  Request asked = request(Verb::acquire, number, key);
  asked.queue_ttl = queue_ttl;
  return asked;
}

inline Result<Reply> ask(LockStore& store, const Request& one, Deadline deadline) {
  auto replies = store.apply({&one, 1}, deadline);
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

inline Reply ask(LockStore& store, const Request& one) { return ask(store, one, soon()).value(); }

// Runs one of the store's statements in another session. Returns the number of its rows, or of
// those that it wrote.
inline int run(Session& session, store::postgres::StatementId id, const Request& one,
               store::postgres::TestClock now = {}) {
  const store::postgres::Statement& statement = store::postgres::statement(id);
  const store::postgres::Params params = store::postgres::bind(id, {&one}, now);
  const std::vector<int> binary(params.size(), 1);
  const store::postgres::Rows rows(PQexecParams(
      session.get(), std::string(statement.sql).c_str(), static_cast<int>(params.size()),
      statement.types.data(), params.values().data(), params.lengths().data(), binary.data(), 1));
  if (std::string problem = PQerrorMessage(session.get()); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  return std::max(rows.size(), rows.affected());
}

}  // namespace baton::test
