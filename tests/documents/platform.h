#pragma once

// A whole platform for a test: `documents up` on a directory of its own, on files or, if
// BATON_DOCUMENTS_ON is servers, on PostgreSQL and a RabbitMQ of the test program's own.

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "apps/documents/common/tx.h"
#include "apps/documents/operate/places.h"
#include "baton/event.h"
#include "support/http_client.h"
#include "support/postgres_database.h"
#include "support/process.h"
#include "support/rabbit_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

inline bool on_servers() {
  const char* on = std::getenv("BATON_DOCUMENTS_ON");
  return on != nullptr && std::string_view(on) == "servers";
}

// One for all cases of the program.
inline RabbitServer& rabbit() {
  static RabbitServer server;
  return server;
}

struct Call {
  std::string method = "POST";
  std::string path = "/documents";
  std::string body = {};
  std::vector<std::string> headers = {"Content-Type: application/json"};  // whole lines
};

inline std::optional<HttpAnswer> ask(int port, const Call& call) {
  try {
    HttpClient client(port);
    std::string text =
        call.method + " " + call.path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    for (const std::string& header : call.headers) text += header + "\r\n";
    if (!call.body.empty()) text += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
    if (!client.send(text + "\r\n" + call.body)) return std::nullopt;
    return client.read(call.method == "HEAD");
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

inline nlohmann::json a_document(const std::string& title = "A letter",
                                 const std::string& simulate = "") {
  nlohmann::json document = {{"title", title},
                             {"contentType", "text/plain"},
                             {"owner", "ann"},
                             {"content", "Dear Bob, this is the letter that you asked for."}};
  if (!simulate.empty()) document["metadata"]["simulate"] = simulate;
  return document;
}

// Of an earlier platform on this broker.
inline void empty_queues(const RabbitServer& server) {
  server.ctl({"stop_app"});
  server.ctl({"reset"});
  server.ctl({"start_app"});
}

struct PlatformOptions {
  std::string replicas = {};
  // Servers of the test's own instead of those that others use too; with only the first the broker
  // is in a file.
  std::string postgres = {};
  std::string rabbitmq = {};
  std::string retry_delays = "20ms";
  std::string program = BATON_DOCUMENTS;        // for the services
  std::map<std::string, std::string> env = {};  // of the services
};

class Platform {
 public:
  explicit Platform(std::string replicas = "")
      : Platform(PlatformOptions{.replicas = std::move(replicas)}) {}
  explicit Platform(PlatformOptions options) : options_(std::move(options)) {
    places_.directory = (directory_ / "data").string();
    places_.postgres = options_.postgres;
    places_.rabbitmq = options_.rabbitmq;
    if (options_.postgres.empty() && on_servers()) {
      places_.postgres = shared_server();
      places_.rabbitmq = rabbit().url();
      empty_queues(rabbit());
    }
    static std::atomic<int> last{0};
    places_.prefix = "docs_" + std::to_string(getpid()) + "_" + std::to_string(++last) + "_";
    start();
  }
  ~Platform() {
    stop();
    if (places_.postgres.empty()) return;
    try {
      for (const char* service : kServices) {
        Session(places_.postgres)
            .sql("DROP DATABASE " + places_.prefix + service + " WITH (FORCE)");
      }
    } catch (const std::exception&) {
      // The server goes with the test run.
    }
  }
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  void start(bool allow_simulation = true) {
    std::vector<std::string> words = {
        options_.program, "up", "--port",         "0",
        "--lock-ttl",     "2s", "--retry-delays", options_.retry_delays};
    if (allow_simulation) words.emplace_back("--allow-simulation");
    if (!options_.replicas.empty()) words.insert(words.end(), {"--replicas", options_.replicas});
    if (!places_.rabbitmq.empty()) words.insert(words.end(), {"--rabbitmq", places_.rabbitmq});
    for (const std::string& word : where()) words.push_back(word);
    up_ = std::make_unique<Process>(ProcessOptions{.argv = words, .env = options_.env});
    if (!up_->wait_for_out("ready: ", 2 * patience)) {
      throw std::runtime_error("the platform does not start: " + up_->out() + up_->err());
    }
  }
  // As an operator does; true if all services ended well and in time.
  bool stop() {
    if (!up_) return true;
    up_->kill(SIGTERM);
    const auto status = up_->wait();
    up_.reset();
    return status && status->success();
  }
  Process& up() { return *up_; }
  [[nodiscard]] pid_t up_pid() const { return up_->pid(); }

  [[nodiscard]] const documents::Places& places() const { return places_; }

  // Of `up` and the process that it runs now.
  [[nodiscard]] static std::vector<std::string> services() {
    return {std::begin(kServices), std::end(kServices)};
  }
  [[nodiscard]] pid_t pid(const std::string& instance) const { return run_file(instance).first; }
  // With SIGKILL, when it serves: until then its process is 0, which kill(2) takes for all of ours.
  void kill(const std::string& instance) const {
    pid_t process = 0;
    if (!poll_until([&] { return (process = pid(instance)) > 0; }, 2 * patience)) {
      throw std::runtime_error(instance + " does not serve");
    }
    ::kill(process, SIGKILL);
  }
  [[nodiscard]] int port(const std::string& instance) const {
    const std::string url = run_file(instance).second;
    return url.empty() ? 0 : std::stoi(url.substr(url.rfind(':') + 1));
  }

  // Asks until it is answered 201, once however often it asks; gives the id.
  std::string submit(const nlohmann::json& document, const std::string& correlation_id = "") const {
    Call call{.body = document.dump()};
    call.headers.push_back("Idempotency-Key: " + make_event_id());
    if (!correlation_id.empty()) call.headers.push_back("X-Correlation-Id: " + correlation_id);
    std::optional<HttpAnswer> answer;
    poll_until([&] {
      const int there = port("ingestion-1");
      if (there != 0) answer = ask(there, call);
      return answer && answer->status == 201;
    });
    if (!answer || answer->status != 201) {
      throw std::runtime_error("not taken: " + (answer ? answer->body : "no answer"));
    }
    return nlohmann::json::parse(answer->body).at("id");
  }
  [[nodiscard]] nlohmann::json get(const std::string& instance, const std::string& path) const {
    const auto answer = ask(port(instance), {.method = "GET", .path = path});
    return answer && answer->status == 200 ? nlohmann::json::parse(answer->body) : nlohmann::json();
  }
  [[nodiscard]] bool reaches(const std::string& id, const std::string& status) const {
    return poll_until([&] {
      const auto document = get("ingestion-1", "/documents/" + id);
      return document.is_object() && document.at("status") == status;
    });
  }

  // Another command of the program, on this platform.
  [[nodiscard]] Finished command(std::vector<std::string> words) const {
    words.insert(words.begin(), BATON_DOCUMENTS);
    for (const std::string& word : where()) words.push_back(word);
    return run({.argv = words}, 10 * patience);
  }
  [[nodiscard]] nlohmann::json verify(const std::string& wait = "60s",
                                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", "--json", "--wait", wait};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = command(words);
    auto result = nlohmann::json::parse(finished.out, nullptr, false);
    if (!result.is_object() || result.at("ok") != finished.status.success()) {
      throw std::runtime_error("verify: " + finished.out + finished.err);
    }
    return result;
  }

  [[nodiscard]] std::unique_ptr<sql::Connection> database(const std::string& service) const {
    return sql::Connection::open(places_.database(service)).value();
  }
  [[nodiscard]] std::string log(const std::string& instance) const {
    std::ifstream file(places_.log_file(instance));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  static constexpr const char* kServices[] = {"ingestion", "validation", "enrichment", "audit",
                                              "notification"};

  [[nodiscard]] std::vector<std::string> where() const {
    std::vector<std::string> words = {"--directory", places_.directory};
    if (!places_.postgres.empty()) {
      words.insert(words.end(), {"--postgres", places_.postgres, "--prefix", places_.prefix});
    }
    return words;
  }
  [[nodiscard]] std::pair<pid_t, std::string> run_file(const std::string& instance) const {
    std::ifstream file(places_.run_file(instance));
    pid_t pid = 0;
    std::string url;
    file >> pid >> url;
    return {pid, url};
  }

  TempDir directory_{"documents"};
  documents::Places places_;
  const PlatformOptions options_;
  std::unique_ptr<Process> up_;
};

}  // namespace baton::test
