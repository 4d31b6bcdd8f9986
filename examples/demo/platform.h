#pragma once

// `documents up` in a directory, watched and disturbed from outside.

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/documents/operate/figures.h"
#include "apps/documents/operate/places.h"
#include "baton/broker.h"
#include "baton/locks.h"

namespace demo {

class Platform {
 public:
  static constexpr int kReplicas = 2;  // of each service

  Platform(std::string program, const std::string& directory);

  [[nodiscard]] const std::vector<std::string>& services() const { return services_; }
  [[nodiscard]] const baton::documents::Places& places() const { return places_; }
  // The program `documents` with a command on this platform.
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const;
  [[nodiscard]] std::vector<std::string> up() const;

  struct Replica {
    std::string instance;  // validation-2
    pid_t pid = 0;         // 0: it has not served since it was started
    std::string url;
    bool alive = false;
    bool paused = false;
  };
  [[nodiscard]] Replica replica(const std::string& instance) const;
  [[nodiscard]] std::vector<Replica> replicas(const std::string& service) const;
  [[nodiscard]] std::vector<Replica> replicas() const;
  [[nodiscard]] bool ready() const;  // all of them serve

  // The replica that does now what one does at a time: publish the events of a service, or seal the
  // audit log. The token grows from one to the next, also if both have the same name.
  struct Turn {
    std::string instance;  // empty: nobody
    baton::Token token = 0;
  };
  [[nodiscard]] Turn publisher(const std::string& service);
  [[nodiscard]] Turn sealer();

  // Stops a replica with SIGSTOP where it holds up nobody and, if that is asked for, has events in
  // hand. False if it is met at another moment; then it goes on.
  bool pause(const Replica& replica, const std::string& service, bool with_events) const;

  [[nodiscard]] baton::Result<baton::documents::Figures> figures() { return figures_.read(); }
  // Whether the log of a replica, from a byte on, has this text; how long that log is.
  [[nodiscard]] std::size_t log_size(const std::string& instance) const;
  [[nodiscard]] int count_in_log(const std::string& instance, std::size_t from,
                                 const std::string& text) const;

 private:
  [[nodiscard]] bool nobody_waits_for(const std::string& service) const;
  [[nodiscard]] bool has_deliveries(const std::string& service) const;
  baton::LockClient& locks_of(const std::string& service);

  const std::string program_;
  const baton::documents::Places places_;
  std::vector<std::string> services_;
  const std::shared_ptr<baton::Broker> broker_;
  baton::documents::FiguresReader figures_;
  std::map<std::string, baton::LockClient> locks_;
};

}  // namespace demo
