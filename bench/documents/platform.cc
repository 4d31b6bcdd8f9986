#include "documents/platform.h"

#include <signal.h>

#include <fstream>
#include <stdexcept>

#include "harness/machine.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

const std::vector<std::string>& Platform::services() {
  static const std::vector<std::string> all = {"ingestion", "validation", "enrichment", "audit",
                                               "notification"};
  return all;
}

Platform::Platform(Lab& lab, std::string name) : lab_(lab), name_(std::move(name)) {
  lab_.rabbitmq();
  for (const std::string& service : services()) {
    databases_[service] = lab_.new_database(name_ + "_" + service);
  }
}

std::string Platform::run_file(const std::string& service) const {
  return (directory_ / service).string() + ".run";
}

void Platform::start(const std::string& service) {
  const std::string base = (directory_ / service).string();
  std::error_code ignored;
  std::filesystem::remove(run_file(service), ignored);
  auto process = std::make_unique<test::Process>(test::ProcessOptions{
      .argv = {"/bin/sh", "-c", R"(log=$1; shift; exec "$@" >>"$log" 2>&1)", "sh", base + ".log",
               BATON_BENCH_DOCUMENTS, service, "--listen", "127.0.0.1:0", "--run-file",
               run_file(service), "--spool", (directory_ / "spool").string()},
      .env = {{"DOCUMENTS_DATABASE", databases_.at(service)},
              {"DOCUMENTS_BROKER", lab_.rabbitmq().url()}}});
  const bool serves =
      test::poll_until([&] { return std::filesystem::exists(run_file(service)); }, kPatience);
  if (!serves) {
    std::ifstream log(base + ".log");
    throw std::runtime_error(
        service + " does not start: " + std::string(std::istreambuf_iterator<char>(log), {}));
  }
  running_[service] = std::move(process);
}

void Platform::stop(const std::string& service) {
  auto& process = *running_.at(service);
  process.kill(SIGTERM);
  const auto status = process.wait(kPatience);
  if (!status || !status->success()) throw std::runtime_error(service + " did not end well");
  running_.erase(service);
}

void Platform::start_all() {
  for (const std::string& service : services()) start(service);
}

int Platform::port(const std::string& service) const {
  std::ifstream file(run_file(service));
  pid_t pid = 0;
  std::string url;
  file >> pid >> url;
  return std::stoi(url.substr(url.rfind(':') + 1));
}

pid_t Platform::pid(const std::string& service) const { return running_.at(service)->pid(); }

std::int64_t Platform::number(const std::string& service, const std::string& sql) {
  auto& session = sessions_[service];
  if (!session) session = std::make_unique<Session>(databases_.at(service));
  return std::stoll(session->ask(sql));
}

std::map<std::string, double> Platform::cpu_seconds() const {
  std::map<std::string, double> spent;
  for (const auto& [service, process] : running_) {
    spent[service] = cpu_seconds_of_process(process->pid());
  }
  spent["postgresql"] = cpu_seconds_of_family(lab_.postgres().pid());
  spent["rabbitmq"] = cpu_seconds_of_process(lab_.rabbitmq().pid());
  return spent;
}

}  // namespace baton::bench
