#pragma once

// What the tests of postgres-advisory: share.

#include <memory>
#include <string>

#include "integration/postgres/postgres_database.h"
#include "store/postgres_advisory/advisory_store.h"

namespace baton::test {

inline std::string advisory(const std::string& postgres_url) {
  return "postgres-advisory" + postgres_url.substr(postgres_url.find(':'));
}

// A new database with the schema, dropped at the end of the scope.
class AdvisoryDatabase : public Database {
 public:
  explicit AdvisoryDatabase(std::string server = shared_server()) : Database(std::move(server)) {
    open_postgres_advisory_admin(advisory(url()), soon()).value()->migrate(soon()).value();
  }
  [[nodiscard]] std::unique_ptr<LockStore> store(const std::string& options = "") const {
    return open_postgres_advisory_store(advisory(url()) + options, soon()).value();
  }
};

inline Request with_ttl(Request request, Millis ttl) {
  request.ttl = ttl;
  return request;
}

inline LockInfo look(LockStore& store, const std::string& key) {
  Request get;
  get.verb = Verb::get;
  get.targets = {{key, Mode::X}};
  return ask(store, get).info.value();
}

// The key of 64 bits that stands for a name, as the schema says.
inline std::string lock_key(const std::string& url, const std::string& name) {
  return Session(url).sql("SELECT baton_advisory.lock_key('" + name + "')");
}

}  // namespace baton::test
