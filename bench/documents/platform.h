#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "events/lab.h"
#include "locks/session.h"
#include "support/process.h"

namespace baton::bench {

// The services of the document platform on the servers of the lab, one replica each, started one by
// one. Their logs go to files, as they do in life.
class Platform {
 public:
  static const std::vector<std::string>& services();  // ingestion first

  // `name` begins the names of its databases.
  Platform(Lab& lab, std::string name);

  void start(const std::string& service);  // returns when it serves
  void stop(const std::string& service);   // as an operator does
  void start_all();

  [[nodiscard]] int port(const std::string& service) const;
  [[nodiscard]] pid_t pid(const std::string& service) const;
  [[nodiscard]] const std::string& database(const std::string& service) const {
    return databases_.at(service);
  }
  // The first number of the first row.
  std::int64_t number(const std::string& service, const std::string& sql);

  // Seconds of processor time of what runs now, by name; the servers are "postgresql" and
  // "rabbitmq".
  [[nodiscard]] std::map<std::string, double> cpu_seconds() const;

 private:
  [[nodiscard]] std::string run_file(const std::string& service) const;

  Lab& lab_;
  const std::string name_;
  test::TempDir directory_{"platform"};
  std::map<std::string, std::string> databases_;
  std::map<std::string, std::unique_ptr<test::Process>> running_;
  std::map<std::string, std::unique_ptr<Session>> sessions_;
};

}  // namespace baton::bench
