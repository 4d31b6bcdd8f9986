// What the line to the API server may do: be cut, be slow, be told to wait, lose its place.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>

#include "integration/kubernetes/kubernetes_support.h"
#include "json/json.h"
#include "store/kubernetes/lease_api.h"
#include "support/fault_proxy.h"
#include "support/loopback.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

using nlohmann::json;
using store::kubernetes::LeaseApi;
using store::kubernetes::WatchEvent;

// An API server that says what it is told to, one request a connection.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    const Listener listener = listen_on_loopback();
    listener_ = listener.socket;
    port_ = listener.port;
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~ScriptedServer() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] store::kubernetes::Cluster cluster() const {
    store::kubernetes::Cluster cluster;
    cluster.address = "http://127.0.0.1:" + std::to_string(port_);
    cluster.space = "default";
    return cluster;
  }
  [[nodiscard]] std::size_t answered() const { return answered_; }
  [[nodiscard]] std::string request(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return requests_.at(number);
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{listener_, POLLIN, 0};
      if (::poll(&ready, 1, 20) != 1) continue;
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      std::string text;
      char byte = 0;
      while (!text.ends_with("\r\n\r\n") && ::recv(socket, &byte, 1, 0) == 1) text += byte;
      const auto length = text.find("Content-Length: ");
      std::size_t body = length == std::string::npos ? 0 : std::stoul(text.substr(length + 16));
      for (; body > 0 && ::recv(socket, &byte, 1, 0) == 1; --body) {
      }
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(text);
      }
      const std::string& answer = answers_[std::min(answered_.load(), answers_.size() - 1)];
      ++answered_;
      (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::shutdown(socket, SHUT_RDWR);
      ::close(socket);
    }
  }

  std::vector<std::string> answers_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<std::size_t> answered_ = 0;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

std::string answer(const std::string& status, const std::string& headers = {},
                   const std::string& body = "{}") {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

store::kubernetes::Clocks boot_clock() {
  return {
      .here =
          [] { return std::chrono::floor<core::StoreTime>(BootClock::now().time_since_epoch()); },
      .server = {}};
}

const std::string kLease =
    R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7","annotations":{}}})";

TEST(KubernetesPressure, a_server_that_asks_for_a_pause_gets_it) {
  ScriptedServer server({answer("429 Too Many Requests", "Retry-After: 1\r\n"),
                         answer("503 Service Unavailable"), answer("404 Not Found")});
  LeaseApi api(server.cluster(), boot_clock());
  const auto began = BootClock::now();
  const auto lease = api.get("n", soon());
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_FALSE(lease->has_value());
  EXPECT_GE(BootClock::now() - began, 1s);
  EXPECT_EQ(server.answered(), 3U);
}

TEST(KubernetesPressure, a_write_is_repeated_only_if_it_cannot_have_happened) {
  {
    ScriptedServer server({answer("429 Too Many Requests"), answer("201 Created", "", kLease)});
    LeaseApi api(server.cluster(), boot_clock());
    const auto written = api.create("{}", soon());
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->lease.version, 7U);
  }
  for (const std::string status : {"500 Internal Server Error", "504 Gateway Timeout"}) {
    ScriptedServer server({answer(status, "Retry-After: 2\r\n")});
    LeaseApi api(server.cluster(), boot_clock());
    const auto written = api.create("{}", soon());
    ASSERT_FALSE(written);
    EXPECT_TRUE(written.error().in_doubt);
    EXPECT_TRUE(written.error().retryable);
    EXPECT_EQ(written.error().retry_after, 2s);
    EXPECT_EQ(server.answered(), 1U);
  }
}

TEST(KubernetesPressure, a_pause_longer_than_the_deadline_is_an_error_at_once) {
  ScriptedServer server({answer("429 Too Many Requests", "Retry-After: 60\r\n")});
  LeaseApi api(server.cluster(), boot_clock());
  const auto began = BootClock::now();
  const auto lease = api.get("n", BootClock::now() + 5s);
  ASSERT_FALSE(lease);
  EXPECT_TRUE(lease.error().retryable);
  EXPECT_LT(BootClock::now() - began, 4s);
}

TEST(KubernetesPressure, a_write_that_had_to_pause_has_only_the_time_that_is_left) {
  ScriptedServer server(
      {answer("429 Too Many Requests", "Retry-After: 1\r\n"), answer("201 Created", "", kLease)});
  LeaseApi api(server.cluster(), boot_clock());
  ASSERT_TRUE(api.create("{}", BootClock::now() + 60s));
  const auto limit = [&](std::size_t i) {
    const std::string asked = server.request(i);
    return std::stoi(asked.substr(asked.find("timeout=") + 8));
  };
  EXPECT_LE(limit(0), 60'000);
  EXPECT_LE(limit(1), limit(0) - 1'000);
}

TEST(KubernetesPressure, a_list_that_is_too_old_goes_on_where_the_server_says) {
  const std::string gone = R"({"kind":"Status","code":410,"metadata":{"continue":"from-here"}})";
  ScriptedServer server({answer("410 Gone", "", gone), answer("200 OK", "", R"({"items":[]})"),
                         answer("410 Gone", "", R"({"kind":"Status","code":410})")});
  LeaseApi api(server.cluster(), boot_clock());
  const auto page = api.list("old", soon());
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->next, "from-here");
  ASSERT_TRUE(api.list(page->next, soon()));
  EXPECT_NE(server.request(1).find("continue=from-here"), std::string::npos);
  const auto lost = api.list("old", soon());
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().retryable);
}

TEST(KubernetesPressure, an_answer_that_makes_no_sense_is_no_grant) {
  for (const std::string body : {"", "null", "[]", "{}", "{\"metadata\":7}"}) {
    ScriptedServer server({answer("200 OK", "", body)});
    LeaseApi api(server.cluster(), boot_clock());
    EXPECT_FALSE(api.get("n", soon())) << body;
    const auto written = api.create("{}", soon());
    ASSERT_FALSE(written) << body;
    EXPECT_TRUE(written.error().in_doubt);
    EXPECT_FALSE(api.list("", soon())) << body;
  }
}

class KubernetesLine : public KubernetesTest {
 protected:
  LeaseApi api() {
    store::kubernetes::Cluster cluster;
    cluster.address = server->address();
    cluster.space = space;
    cluster.tls.ca_file = server->ca_file();
    cluster.token = KubeServer::token("admin");
    return LeaseApi(cluster, boot_clock());
  }

  // With a kubeconfig in that directory.
  std::string url_at(int port, const TempDir& dir) {
    json config = json::parse(std::ifstream(server->kubeconfig("admin", space)));
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:" + std::to_string(port);
    std::ofstream(dir / "config") << config;
    return "k8s://?kubeconfig=" + (dir / "config").string();
  }
};

TEST_F(KubernetesLine, a_watch_that_is_too_far_behind_is_told_to_start_over) {
  // A new server knows only what came after its start.
  server->crash();
  server->start();
  LeaseApi line = api();
  bool gone = false;
  std::stop_source stop;
  const std::jthread limit([&](const std::stop_token& over) {
    (void)poll_until([&] { return over.stop_requested(); }, 60s);
    stop.request_stop();
  });
  const auto ended = line.watch(
      1,
      [&](const WatchEvent& event) {
        gone = gone || event.kind == WatchEvent::Kind::gone;
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_TRUE(ended) << ended.error().message;
  EXPECT_TRUE(gone);
}

// Lets a test wait for a wake-up.
class Ear final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    for (const GrantId id : grants) heard_.push_back(id);
    signal_.notify_all();
  }
  bool hears(GrantId id) {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(
        lock, 60s, [&] { return std::find(heard_.begin(), heard_.end(), id) != heard_.end(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  std::vector<GrantId> heard_;
};

// What only its watch can tell it: from then on it goes by it.
void hear_of_a_break(LockStore& store, LockStore& breaker) {
  Ear ear;
  const Request held = acquire(99, "DEFAULT:broken");
  const auto watch = store.watch(held.channel, ear);
  const auto taken = store.apply({&held, 1}, soon());
  ASSERT_TRUE(taken && taken->at(0).outcome == Outcome::granted);
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = held.targets;
  ASSERT_TRUE(breaker.apply({&breaking, 1}, soon()));
  ASSERT_TRUE(ear.hears(held.grant));
}

TEST_F(KubernetesLine, another_process_hears_of_its_turn_also_after_the_server_restarted) {
  auto one = open();
  auto two = open();
  Ear ear;
  const auto watch = two->watch("process-2", ear);
  Request holder = acquire(1, kName);
  holder.ttl = Millis(300'000);
  Request waiter = acquire(2, kName, Mode::X, Millis(300'000));
  waiter.claim_within = Millis(300'000);
  ASSERT_EQ(outcome(*one, holder), Outcome::granted);
  ASSERT_EQ(outcome(*two, waiter), Outcome::queued);
  server->crash();
  const Error down = failure(*two, same_targets(Verb::claim, waiter));
  EXPECT_EQ(down.code, Code::unavailable);
  EXPECT_TRUE(down.retryable);
  EXPECT_FALSE(down.in_doubt) << "nobody was there to do anything";
  server->start();
  // Moves the version on, so that the place of the watch is one that the new server does not know.
  for (std::uint64_t i = 10; i < 20; ++i) {
    outcome(*one, acquire(i, "DEFAULT:x:" + std::to_string(i)));
  }
  ASSERT_EQ(outcome(*one, same_targets(Verb::release, holder)), Outcome::done);
  EXPECT_TRUE(ear.hears(waiter.grant));
  EXPECT_EQ(outcome(*two, same_targets(Verb::claim, waiter)), Outcome::granted);
}

// A load balancer whose backend has gone, or a frozen server behind another: the line stands, and
// nothing comes.
TEST_F(KubernetesLine, a_waiter_asks_for_its_turn_although_a_silent_watch_tells_it_nothing) {
  FaultProxy proxy(std::stoi(server->address().substr(server->address().rfind(':') + 1)));
  TempDir dir;
  auto time = std::make_shared<ManualTime>();
  auto one = open();
  auto two = open({.url = url_at(proxy.port(), dir), .now = [time] { return time->now(); }});
  const Request holder = acquire(1, kName);
  Request waiter = acquire(2, kName, Mode::X, Millis(600'000));
  waiter.claim_within = Millis(10'000);
  ASSERT_EQ(outcome(*one, holder), Outcome::granted);
  ASSERT_EQ(outcome(*two, waiter), Outcome::queued);
  ASSERT_NO_FATAL_FAILURE(hear_of_a_break(*two, *one));
  const Request claim = same_targets(Verb::claim, waiter);
  ASSERT_EQ(outcome(*two, claim), Outcome::queued);
  proxy.silence();
  ASSERT_EQ(outcome(*one, same_targets(Verb::release, holder)), Outcome::done);
  // On connections that there were, there is no answer.
  const auto answer = [&] {
    Outcome said = Outcome::invalid;
    EXPECT_TRUE(poll_until([&] {
      const auto replies = two->apply({&claim, 1}, BootClock::now() + 3s);
      if (replies) said = replies->at(0).outcome;
      return replies.has_value();
    }));
    return said;
  };
  EXPECT_EQ(answer(), Outcome::queued) << "it goes by its watch";
  time->advance(Millis(6'000));
  EXPECT_EQ(answer(), Outcome::granted);
}

TEST_F(KubernetesLine, a_release_that_was_carried_out_is_in_doubt_and_not_lost) {
  FaultProxy proxy(std::stoi(server->address().substr(server->address().rfind(':') + 1)));
  TempDir dir;
  auto store = open({.url = url_at(proxy.port(), dir)});
  std::uint64_t number = 0;
  // What is swallowed may as well be the answer to what the store asks beside the release.
  EXPECT_TRUE(poll_until([&] {
    const Request holder = acquire(++number, kName);
    EXPECT_EQ(outcome(*store, holder), Outcome::granted);
    Request last = same_targets(Verb::release, holder);
    last.change.text = "the last words of " + std::to_string(number);
    proxy.swallow_answer_to("");
    const auto replies = store->apply({&last, 1}, soon());
    if (replies) {
      EXPECT_EQ(replies->at(0).outcome, Outcome::done);
      return HasFailure();
    }
    EXPECT_TRUE(replies.error().in_doubt) << replies.error().message;
    EXPECT_EQ(ask(*open(), same_targets(Verb::get, holder)).info->note.text, last.change.text);
    return true;
  }));
}

TEST_F(KubernetesLine, the_holder_of_a_lock_broken_by_another_process_is_woken) {
  auto one = open();
  auto two = open();
  Ear ear;
  const auto watch = one->watch("process-1", ear);
  ASSERT_EQ(outcome(*one, acquire(1, kName)), Outcome::granted);
  ASSERT_EQ(outcome(*one, acquire(3, "DEFAULT:other")), Outcome::granted);
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = {{kName, Mode::X}};
  EXPECT_EQ(outcome(*two, breaking), Outcome::done);
  EXPECT_TRUE(ear.hears(grant(1)));
}

TEST_F(KubernetesLine, a_server_that_is_not_there_is_unavailable_by_the_deadline) {
  TempDir dir;
  const std::string url = url_at(free_port(), dir);
  const auto began = BootClock::now();
  const auto opened = store::open_kubernetes_store_with({.url = url}, began + 5s);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::unavailable);
  EXPECT_TRUE(opened.error().retryable);
  EXPECT_FALSE(opened.error().in_doubt);
  EXPECT_LT(BootClock::now() - began, 10s);
}

TEST_F(KubernetesLine, a_server_that_hangs_is_in_doubt_by_the_deadline) {
  auto store = open();
  ASSERT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  ASSERT_TRUE(stop_still(server->pid()));
  const auto began = BootClock::now();
  const Request renew = same_targets(Verb::renew, acquire(1, kName));
  const auto replies = store->apply({&renew, 1}, began + 1s);
  ::kill(server->pid(), SIGCONT);
  ASSERT_FALSE(replies);
  EXPECT_TRUE(replies.error().in_doubt);
  EXPECT_LT(BootClock::now() - began, 5s);
  EXPECT_EQ(outcome(*store, renew), Outcome::granted);
}

}  // namespace
}  // namespace baton::test
