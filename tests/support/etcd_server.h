#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

struct EtcdOptions {
  std::size_t members = 1;
  std::vector<std::string> arguments;  // more of etcd's own
  std::string scheme = "http";         // https: say the certificates in `arguments`
  bool on_disk = false;                // flushes cost what they cost
};

// An etcd cluster of this test's own on 127.0.0.1. Its files are in memory unless asked otherwise,
// since a disk flush costs more than all the rest. It ends with this object, and also if the test
// process dies. Not thread-safe. Every failure is an exception.
class EtcdServer {
 public:
  explicit EtcdServer(EtcdOptions options = {});
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  void start(std::size_t member);  // returns when it answers
  void launch_all();               // all that are stopped; returns when they answer
  void stop(std::size_t member);   // at once, as in a crash; its data stays
  void restart(std::size_t member = 0);
  [[nodiscard]] Process& process(std::size_t member) { return *members_.at(member).process; }

  // Which member leads; waits until one does.
  [[nodiscard]] std::size_t leader();

  // etcd://host:port,… of all members; `more` comes behind it.
  [[nodiscard]] std::string url(const std::string& more = "") const;
  [[nodiscard]] std::string endpoint(std::size_t member = 0) const;  // 127.0.0.1:port
  [[nodiscard]] int port(std::size_t member = 0) const { return members_.at(member).client_port; }
  [[nodiscard]] std::string log(std::size_t member = 0) const;

  // The answer to a POST to the JSON gateway, a refusal too. For plain http only.
  [[nodiscard]] std::string post(std::size_t member, const std::string& path,
                                 const std::string& body) const;

 private:
  struct Member {
    int client_port = 0;
    int peer_port = 0;
    int health_port = 0;
    std::unique_ptr<Process> process;
    std::unique_ptr<Process> guard;
  };
  void launch(std::size_t member);
  void await(std::size_t member);
  [[nodiscard]] bool ready(std::size_t member) const;

  EtcdOptions options_;
  TempDir dir_;
  std::filesystem::path data_;
  std::vector<Member> members_;
};

}  // namespace baton::test
