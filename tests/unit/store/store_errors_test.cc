// What each store makes of what its server says: who only has a bad moment is asked again.

#include <gtest/gtest.h>

#include <sqlite3.h>

#include <cerrno>
#include <string>
#include <vector>

#include "store/etcd/etcd_error.h"
#include "store/kubernetes/api_server.h"
#include "store/postgres/sql_error.h"
#include "store/redis/redis_error.h"
#include "store/sqlite/database.h"

namespace baton::test {
namespace {

enum class Meaning { passes, operator_must_act, no_rights };
using enum Meaning;

Meaning meaning_of(const Error& error) {
  if (error.code == Code::unavailable && error.retryable) return passes;
  EXPECT_FALSE(error.code == Code::unavailable) << error.message;
  return error.code == Code::unauthorized ? no_rights : operator_must_act;
}

std::ostream& operator<<(std::ostream& out, Meaning meaning) {
  return out << (meaning == passes      ? "passes"
                 : meaning == no_rights ? "no rights"
                                        : "an operator must act");
}

TEST(StoreErrors, etcd) {
  struct Row {
    int code;  // gRPC's
    std::string message;
    Meaning meaning;
    bool write_in_doubt;
  };
  const std::vector<Row> rows = {
      {1, "grpc: the client connection is closing", passes, true},
      {1, "context canceled", passes, true},
      {2, "raft proposal dropped", passes, true},
      {4, "context deadline exceeded", passes, true},
      {8, "etcdserver: mvcc: database space exceeded", passes, true},
      {8, "etcdserver: too many requests", passes, false},
      {9, "etcdserver: not leader", passes, false},
      {9, "etcdserver: not capable", passes, false},
      {13, "stream terminated by RST_STREAM", passes, true},
      {14, "etcdserver: no leader", passes, true},
      {14, "etcdserver: leader changed", passes, true},
      {14, "etcdserver: not capable", passes, true},
      {14, "etcdserver: server stopped", passes, true},
      {14, "etcdserver: request timed out", passes, true},
      {14, "etcdserver: request timed out, possibly due to previous leader failure", passes, true},
      {14, "etcdserver: rpc not supported for learner", passes, true},
      {0, "an answer that is not etcd's", passes, true},
      {3, "etcdserver: duplicate key given in txn request", operator_must_act, false},
      {12, "unknown service", operator_must_act, true},
      {15, "etcdserver: corrupt cluster", operator_must_act, true},
      {3, "etcdserver: authentication failed, invalid user ID or password", no_rights, false},
      {7, "etcdserver: permission denied", no_rights, false},
      {9, "etcdserver: authentication is not enabled", no_rights, false},
      {16, "etcdserver: invalid auth token", no_rights, false},
  };
  for (const Row& row : rows) {
    const Error error = store::etcd::error_for({row.code, row.message}, 500, true);
    EXPECT_EQ(meaning_of(error), row.meaning) << row.message;
    EXPECT_EQ(error.in_doubt, row.write_in_doubt) << row.message;
    EXPECT_FALSE(store::etcd::error_for({row.code, row.message}, 500, false).in_doubt);
    EXPECT_EQ(store::etcd::is_full(error), row.message.find("space") != std::string::npos);
  }
  EXPECT_EQ(meaning_of(store::etcd::error_for({12, "no such page"}, 503, false)), passes)
      << "a proxy whose server is not there";
}

TEST(StoreErrors, postgres) {
  const std::vector<std::pair<std::string, Meaning>> rows = {
      {"", passes},       // the connection broke
      {"08001", passes},  // connection exceptions
      {"08006", passes},
      {"0A000", passes},             // a cached plan must not change its result type
      {"25006", passes},             // read only: a failover
      {"25P03", passes},             // idle in transaction for too long
      {"40001", passes},             // serialization failure
      {"40P01", passes},             // deadlock
      {"53100", passes},             // disk full
      {"53200", passes},             // out of memory
      {"53300", passes},             // too many connections
      {"54000", passes},             // the queue of notifications is full
      {"55006", passes},             // the object is in use
      {"55P03", passes},             // a lock is not available
      {"57014", passes},             // the statement was cancelled
      {"57P01", passes},             // the server shuts down,
      {"57P02", passes},             // crashes,
      {"57P03", passes},             // or starts
      {"57P05", passes},             // idle for too long
      {"58000", passes},             // a system error
      {"58030", passes},             // an input or output error
      {"XX000", passes},             // an internal error
      {"3D000", operator_must_act},  // no such database
      {"42P01", operator_must_act},  // no such table
      {"26000", operator_must_act},  // a pooling proxy
      {"XX001", operator_must_act},  // damaged data
      {"XX002", operator_must_act},  // a damaged index
      {"28P01", no_rights},          // a wrong password
      {"28000", no_rights},
      {"42501", no_rights},
  };
  for (const auto& [state, meaning] : rows) {
    EXPECT_EQ(meaning_of(store::postgres::error_for(state, "said", {})), meaning) << state;
  }
}

TEST(StoreErrors, redis) {
  struct Row {
    std::string text;
    Meaning meaning;
    bool in_doubt;
  };
  const std::vector<Row> rows = {
      {"LOADING Redis is loading the dataset in memory", passes, false},
      {"BUSY Redis is busy running a script", passes, false},
      {"MASTERDOWN Link with MASTER is down", passes, false},
      {"READONLY You can't write against a read only replica.", passes, false},
      {"TRYAGAIN Multiple keys request during rehashing of slot", passes, false},
      {"CLUSTERDOWN The cluster is down", passes, false},
      {"OOM command not allowed when used memory > 'maxmemory'.", passes, false},
      {"MISCONF Redis is configured to save RDB snapshots", passes, false},
      {"NOREPLICAS Not enough good replicas to write.", passes, false},
      {"ERR max number of clients reached", passes, false},
      {"ERR max number of clients + cluster connections reached", passes, false},
      {"NOSCRIPT No matching script.", passes, false},
      {"ERR Error running script: @user_script:9: -OOM command not allowed", passes, false},
      {"WRONGPASS invalid username-password pair", no_rights, false},
      {"NOAUTH Authentication required.", no_rights, false},
      {"NOPERM this user has no permissions", no_rights, false},
      {"DENIED Redis is running in protected mode", no_rights, false},
      {"ERR unknown command", operator_must_act, true},
  };
  for (const Row& row : rows) {
    const Error error = store::redis::error_for(row.text, {});
    EXPECT_EQ(meaning_of(error), row.meaning) << row.text;
    EXPECT_EQ(error.in_doubt, row.in_doubt) << row.text;
  }
}

TEST(StoreErrors, kubernetes) {
  using store::kubernetes::ApiCall;
  struct Row {
    int status;
    Meaning meaning;
    bool write_in_doubt;
  };
  const std::vector<Row> rows = {
      {408, passes, true},
      {429, passes, false},
      {500, passes, true},
      {502, passes, true},
      {503, passes, true},
      {504, passes, true},
      {401, no_rights, false},
      {403, no_rights, false},
      {404, operator_must_act, false},  // no such namespace
      {422, operator_must_act, false},
  };
  const store::kubernetes::ApiServer with_file({.address = "https://k", .token_file = "/token"});
  const store::kubernetes::ApiServer with_certificate({.address = "https://k"});
  const ApiCall read{.verb = "get", .method = "GET", .path = "/"};
  const ApiCall write{.verb = "update", .method = "PUT", .path = "/", .writes = true};
  for (const Row& row : rows) {
    const http_client::HttpResponse answer{.status = row.status};
    EXPECT_EQ(meaning_of(with_file.refusal(write, answer)), row.meaning) << row.status;
    EXPECT_EQ(with_file.refusal(write, answer).in_doubt, row.write_in_doubt) << row.status;
    EXPECT_FALSE(with_file.refusal(read, answer).in_doubt) << row.status;
  }
  EXPECT_TRUE(with_file.refusal(read, {.status = 401}).retryable)
      << "the cluster may be about to write the next token";
  EXPECT_FALSE(with_certificate.refusal(read, {.status = 401}).retryable);
}

TEST(StoreErrors, sqlite) {
  struct Row {
    int code;
    int system_error;
    Meaning meaning;
  };
  const std::vector<Row> rows = {
      {SQLITE_BUSY, 0, passes},
      {SQLITE_BUSY_SNAPSHOT, 0, passes},
      {SQLITE_LOCKED, 0, passes},
      {SQLITE_PROTOCOL, 0, passes},
      {SQLITE_FULL, 0, passes},
      {SQLITE_IOERR_FSYNC, EIO, passes},
      {SQLITE_IOERR_WRITE, ENOSPC, passes},
      {SQLITE_CANTOPEN, EMFILE, passes},
      {SQLITE_CANTOPEN, ENFILE, passes},
      {SQLITE_NOMEM, 0, passes},
      {SQLITE_CANTOPEN, ENOENT, operator_must_act},
      {SQLITE_CORRUPT, 0, operator_must_act},
      {SQLITE_NOTADB, 0, operator_must_act},
      {SQLITE_READONLY, 0, operator_must_act},
      {SQLITE_CANTOPEN, EACCES, no_rights},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(meaning_of(store::sqlite::explain(row.code, "a.db", "said", row.system_error)),
              row.meaning)
        << row.code << " " << row.system_error;
  }
}

}  // namespace
}  // namespace baton::test
