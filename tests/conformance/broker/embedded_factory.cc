#include <sqlite3.h>

#include <stdexcept>

#include "harness.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

// A transaction that does not end keeps all others from writing.
std::shared_ptr<void> open_transaction(const std::string& path) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK ||
      sqlite3_busy_timeout(database, 30'000) != SQLITE_OK ||
      sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error("cannot lock " + path);
  }
  return {database, [](sqlite3* opened) { sqlite3_close(opened); }};
}

class EmbeddedFactory final : public BrokerFactory {
 public:
  std::string url() override { return "embedded:" + path(); }
  // There is no process of the broker's own.
  void restart() override {}
  std::shared_ptr<void> block() override { return open_transaction(path()); }
  std::string impatient_url() override { return url() + "?lease=1s"; }
  std::string refused_url() override { return ""; }
  std::shared_ptr<void> alarm() override { return nullptr; }

 private:
  [[nodiscard]] std::string path() const { return (directory_ / "broker.db").string(); }

  TempDir directory_{"baton-broker"};
};

}  // namespace

std::unique_ptr<BrokerFactory> make_broker_factory() { return std::make_unique<EmbeddedFactory>(); }

}  // namespace baton::test
