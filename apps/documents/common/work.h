#pragma once

#include <string>
#include <string_view>

#include "apps/documents/common/tx.h"
#include "baton/consumer.h"
#include "json/json.h"
#include "observe/log.h"

namespace baton::documents {

// An event in the hands of a service: what a handler needs, and nothing of the database's kind.
class Work {
 public:
  // `fields` gets what the log line of the outcome says besides.
  Work(Handling& handling, observe::LogFields& fields, bool allow_simulation)
      : tx(handling), handling_(handling), fields_(fields), allow_simulation_(allow_simulation) {}

  const Tx tx;  // of the open transaction

  [[nodiscard]] const Event& event() const { return handling_.event(); }
  [[nodiscard]] const std::string& document() const { return event().aggregate; }
  [[nodiscard]] int attempt() const { return handling_.attempt(); }
  [[nodiscard]] std::string last_error() const { return std::string(handling_.last_error()); }
  [[nodiscard]] std::string occurred_at() const;  // RFC 3339

  // Throws if it is no object.
  [[nodiscard]] nlohmann::json payload() const;

  // Adds an event about the same document to the outbox, in this transaction. Gives its id.
  std::string publish(std::string_view type, const nlohmann::json& payload) const;

  void log_field(std::string name, std::string value) const;

  // For demonstrations and tests, with --allow-simulation: a document whose metadata has
  // {"simulate": "poison", "crash" or "flaky"} fails, kills the process, or fails twice, in the
  // service `simulateAt` (default enrichment).
  void simulate(const nlohmann::json& payload, std::string_view service) const;

 private:
  Handling& handling_;
  observe::LogFields& fields_;
  bool allow_simulation_;
};

// The saga's compensation: what a stage adds in the transaction that makes its event a dead letter.
void publish_failed(const Work& work, std::string_view stage);

// JSON text; bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string dump(const nlohmann::json& value);

}  // namespace baton::documents
