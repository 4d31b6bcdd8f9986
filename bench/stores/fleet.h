#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/locks.h"
#include "support/fault_proxy.h"
#include "support/process.h"

namespace baton::bench {

// Where the replicas of a failover row meet.
struct Deployment {
  std::shared_ptr<void> server;              // whatever must live for as long as this is used
  int port = 0;                              // of the server; 0: there is no network in between
  std::function<std::string(int port)> url;  // of the store behind that port
  std::function<void()> restart;             // kills the server and starts it again; or nothing
};

// A leader and some followers, each a process with a network of its own.
class Fleet {
 public:
  Fleet(const Deployment& deployment, std::size_t followers, Millis ttl);

  // Returns when all followers wait.
  void await_followers();

  // These strike the leader and give the milliseconds until another one leads. It is replaced.
  double kill();
  double stop();  // SIGSTOP
  double cut();   // of the network, as if a cable were out

  // The server crashes and comes back, and the leader dies with it.
  double crash_all();
  [[nodiscard]] double milliseconds_away() const { return away_; }  // the server, the last time

  // The server alone. True: the leader still leads `limit` after the server is back.
  bool keeps_leader_over_restart(Millis limit);

 private:
  struct Replica {
    std::unique_ptr<test::FaultProxy> proxy;
    std::unique_ptr<test::Process> process;
  };
  struct Led {
    std::size_t replica = 0;
    std::int64_t since = 0;  // boot time in ns
  };

  void start_one();
  void replace_leader(const Led& next);
  [[nodiscard]] std::optional<Led> find_leader(std::optional<std::size_t> other_than) const;
  Led await_leader(std::optional<std::size_t> other_than);
  double measure(const std::function<void(Replica& leader)>& strike);

  const Deployment& deployment_;
  const std::size_t followers_;
  const Millis ttl_;
  LockClient locks_;
  std::vector<Replica> replicas_;
  std::size_t leader_ = 0;
  double away_ = 0;
};

}  // namespace baton::bench
