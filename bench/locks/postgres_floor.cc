#include "locks/postgres_floor.h"

#include <memory>
#include <stdexcept>

#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr const char* kTable = R"(
  CREATE SEQUENCE floor_token;
  CREATE TABLE floor_lock (
    name text COLLATE "C" PRIMARY KEY, holder uuid NOT NULL, token bigint NOT NULL,
    expires timestamptz NOT NULL
  ) WITH (fillfactor = 70))";

constexpr const char* kAcquire = R"(
  INSERT INTO floor_lock AS l
  VALUES ($1, $2, nextval('floor_token'), clock_timestamp() + interval '30 s')
  ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, token = nextval('floor_token'), expires = excluded.expires
    WHERE l.expires <= clock_timestamp()
  RETURNING token)";

// The setting lasts until the end of the transaction: its commit does not wait for the disk.
constexpr const char* kRelease = R"(
  UPDATE floor_lock SET expires = '-infinity' WHERE name = $1 AND holder = $2
  RETURNING set_config('synchronous_commit', 'off', true))";

constexpr const char* kHolder = "6f1c0a52-9a57-4f0e-8d36-6f0d8a3c7b11";

}  // namespace

void create_postgres_floor(const std::string& url) { Session(url).ask(kTable); }

std::vector<Step> postgres_floor(const std::string& url, int count, int names_each) {
  std::vector<Step> steps;
  for (int caller = 0; caller < count; ++caller) {
    const auto session = std::make_shared<Session>(url);
    session->prepare("acquire", kAcquire);
    session->prepare("release", kRelease);
    std::vector<std::string> names;
    for (int i = 0; i < names_each; ++i) {
      names.push_back("DEFAULT:bench:" + std::to_string(caller) + ":" + std::to_string(i));
    }
    steps.emplace_back([session, names, next = std::size_t{0}]() mutable {
      const char* name = names[next++ % names.size()].c_str();
      if (session->run("acquire", {name, kHolder}).empty()) throw std::runtime_error("not granted");
      if (session->run("release", {name, kHolder}).empty()) throw std::runtime_error("not held");
    });
  }
  return steps;
}

}  // namespace baton::bench
