#include "event_tables.h"

namespace baton::test {

void make_event_tables(sql::Connection& shop, sql::Connection& sink, int aggregates) {
  shop.script(
          "DROP TABLE IF EXISTS aggregate; DROP TABLE IF EXISTS business;"
          "CREATE TABLE aggregate (name TEXT PRIMARY KEY, number BIGINT NOT NULL);"
          "CREATE TABLE business (event_id TEXT, aggregate TEXT, number BIGINT)")
      .value();
  for (int i = 1; i <= aggregates; ++i) {
    shop.query("INSERT INTO aggregate VALUES ($1, 0)", {"a" + std::to_string(i)}).value();
  }
  sink.script(
          "DROP TABLE IF EXISTS effect;"
          "CREATE TABLE effect (event_id TEXT, aggregate TEXT, node TEXT)")
      .value();
}

Result<void> add_event(sql::Transaction& transaction, const Outbox& outbox,
                       const std::string& aggregate, const std::string& type) {
  auto number = transaction.query(
      "UPDATE aggregate SET number = number + 1 WHERE name = $1 RETURNING number", {aggregate});
  if (!number) return number.error();
  const std::int64_t n = number->front().integer(0);
  const Event event{
      .type = type, .aggregate = aggregate, .payload = "{\"n\":" + std::to_string(n) + "}"};
  auto* postgres = transaction.connection().postgres();
  auto id = postgres != nullptr ? outbox.add(postgres, event)
                                : outbox.add(transaction.connection().sqlite(), event);
  if (!id) return id.error();
  auto noted =
      transaction.query("INSERT INTO business (event_id, aggregate, number) VALUES ($1, $2, $3)",
                        {*id, aggregate, n});
  if (!noted) return noted.error();
  return {};
}

}  // namespace baton::test
