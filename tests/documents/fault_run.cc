#include "fault_run.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int kReplicas = 3;
constexpr int kSubmitters = 4;
constexpr auto kAnswerWithin = 3s;  // a stopped process answers nobody
constexpr auto kPastTtl = 4s;       // twice the TTL of the platform

// What /proc says of a process: its parent, and the word behind --instance.
std::pair<pid_t, std::string> look_at(const std::filesystem::path& process) {
  std::ifstream stat(process / "stat");
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  if (state == "Z") return {};
  std::ifstream words(process / "cmdline");
  for (std::string word; std::getline(words, word, '\0');) {
    if (word == "--instance" && std::getline(words, word, '\0')) return {parent, word};
  }
  return {};
}

// The processes that `up` runs now, by instance: also those that do not serve yet.
std::map<std::string, pid_t> children_of(pid_t up) {
  std::map<std::string, pid_t> children;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto [parent, instance] = look_at(entry.path());
    if (parent == up && !instance.empty()) children[instance] = std::stoi(name);
  }
  return children;
}

Submitted of_kind(int kind, int number) {
  json document = a_document("Letter " + std::to_string(number));
  document["owner"] = "user-" + std::to_string(number % 20);
  if (kind < 70) return {document, "ENRICHED", "", 3, 2};
  if (kind < 80) {
    document["content"] = "this is malware";
    return {document, "REJECTED", "", 2, 2};
  }
  const std::string stage = kind % 2 == 0 ? "validation" : "enrichment";
  document["metadata"]["simulateAt"] = stage;
  if (kind < 90) {
    document["metadata"]["simulate"] = "flaky";
    return {document, "ENRICHED", "", 3, 2};
  }
  document["metadata"]["simulate"] = "poison";
  if (stage == "validation") return {document, "FAILED", stage, 2, 2};
  return {document, "FAILED", stage, 3, 3};
}

// Without most of the lines of long lists.
std::string beginning_of(json verdict) {
  for (const char* list : {"wrong", "unfinished", "deadLetters"}) {
    json& lines = verdict.at(list);
    const std::size_t all = lines.size();
    while (lines.size() > 20) lines.erase(lines.size() - 1);
    if (all > lines.size()) lines.push_back("… " + std::to_string(all) + " in all");
  }
  return verdict.dump(2);
}

}  // namespace

std::vector<Submitted> documents_of_all_kinds(std::mt19937_64& random, int count, int crashing) {
  std::vector<Submitted> documents;
  for (int i = 0; i < count; ++i) {
    documents.push_back(of_kind(static_cast<int>(random() % 100), i));
  }
  // Early ones: it takes some time until they are given up.
  for (int i = 0; i < crashing; ++i) {
    Submitted crash = of_kind(99, static_cast<int>(random() % 20));  // 99: poison in enrichment
    crash.document["metadata"]["simulate"] = "crash";
    documents[static_cast<std::size_t>(random() % 20)] = crash;
  }
  return documents;
}

PlatformOptions FaultRun::options(const std::string& postgres, const std::string& rabbitmq) {
  std::string replicas;
  for (const std::string& service : Platform::services()) {
    replicas += (replicas.empty() ? "" : ",") + service + "=" + std::to_string(kReplicas);
  }
  return {.replicas = replicas,
          .postgres = postgres,
          .rabbitmq = rabbitmq,
          .env = {{"DOCUMENTS_HANDLER_TIMEOUT", "2s"}}};
}

FaultRun::FaultRun(Platform& platform, std::uint64_t seed, int documents, int crashing)
    : platform_(platform),
      random_(seed),
      documents_(documents_of_all_kinds(random_, documents, crashing)) {
  for (int i = 0; i < documents; ++i) keys_.push_back(make_event_id());
  for (int i = 0; i < kSubmitters; ++i) {
    submitting_.emplace_back([this](const std::stop_token& stop) { submit_all(stop); });
  }
}

FaultRun::~FaultRun() {
  for (auto& one : submitting_) one.request_stop();
  submitting_.clear();
}

void FaultRun::submit(int more) {
  const std::lock_guard lock(mutex_);
  allowed_ = std::min(allowed_ + static_cast<std::size_t>(more), documents_.size());
  signal_.notify_all();
}

void FaultRun::submit_all(const std::stop_token& stop) {
  for (;;) {
    std::size_t index = 0;
    {
      std::unique_lock lock(mutex_);
      if (!signal_.wait(lock, stop, [&] { return next_ < allowed_; })) return;
      index = next_++;
    }
    for (int turn = 0; !stop.stop_requested() && !submit_one(index, turn); ++turn) {
      std::this_thread::sleep_for(20ms);  // the platform starts that replica again
    }
  }
}

// False: not answered, or not now. The same key each time, so that it is stored once.
bool FaultRun::submit_one(std::size_t index, int turn) {
  const auto replica = (index + static_cast<std::size_t>(turn)) % kReplicas + 1;
  const int port = platform_.port("ingestion-" + std::to_string(replica));
  if (port == 0) return false;
  const std::string body = documents_[index].document.dump();
  std::optional<HttpAnswer> answer;
  try {
    HttpClient client(port);
    if (!client.send("POST /documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nIdempotency-Key: " +
                     keys_[index] + "\r\nContent-Length: " + std::to_string(body.size()) +
                     "\r\n\r\n" + body)) {
      return false;
    }
    answer = client.read(false, kAnswerWithin);
  } catch (const std::system_error&) {
    return false;  // nobody is there
  }
  if (!answer) return false;
  const std::lock_guard lock(mutex_);
  if (answer->status != 201) {
    if (answer->status != 409 && answer->status != 503) refused_ = answer->body;
    return false;
  }
  const std::string id = json::parse(answer->body).at("id");
  taken_[id] = index;
  signal_.notify_all();
  return true;
}

void FaultRun::wait_for(int taken) {
  std::unique_lock lock(mutex_);
  const auto enough = [&] { return taken_.size() >= static_cast<std::size_t>(taken); };
  if (signal_.wait_for(lock, 4 * patience, enough)) return;
  throw std::runtime_error("only " + std::to_string(taken_.size()) +
                           " documents were taken: " + refused_);
}

int FaultRun::unfinished() const {
  auto database = platform_.places().look_into("ingestion");
  if (!database) return count();
  const auto rows = (*database)->query(
      "SELECT count(*) FROM documents WHERE status IN ('UPLOADED', 'VALIDATED')");
  return rows ? static_cast<int>(rows->front().integer(0)) : count();
}

std::string FaultRun::choose() {
  const auto services = Platform::services();
  const std::string& service = services[random_() % services.size()];
  return service + "-" + std::to_string(random_() % kReplicas + 1);
}

std::string FaultRun::kill_one() {
  std::string instance = choose();
  const auto children = children_of(platform_.up_pid());
  const auto found = children.find(instance);
  if (found == children.end() || ::kill(found->second, SIGKILL) != 0) return "";
  ++kills_;
  return instance;
}

std::string FaultRun::stop_one_past_its_ttl() {
  const std::string instance = choose();
  const bool kill = random_() % 2 == 0;
  pid_t pid = 0;
  const bool stopped = poll_until([&] {
    const auto children = children_of(platform_.up_pid());
    const auto found = children.find(instance);
    pid = found == children.end() ? 0 : found->second;
    return pid != 0 && stop_still(pid);
  });
  if (!stopped) throw std::runtime_error(instance + " cannot be stopped");
  const auto until = BootClock::now() + kPastTtl;
  poll_until([&] { return BootClock::now() > until; }, 2 * kPastTtl, 50ms);
  ::kill(pid, kill ? SIGKILL : SIGCONT);
  return instance + (kill ? ", then killed" : ", then continued");
}

std::string FaultRun::problems(const std::string& wait) {
  std::string problems;
  const auto problem = [&](const std::string& line) { problems += line + "\n"; };
  const json verdict = platform_.verify(wait);
  if (verdict.at("ok") != true) problem("verify: " + beginning_of(verdict));

  const std::lock_guard lock(mutex_);
  if (!refused_.empty()) problem("a document was refused: " + refused_);
  if (taken_.size() != documents_.size()) problem("not all documents were taken");
  std::int64_t events = 0;
  std::int64_t notifications = 0;
  std::set<std::pair<std::string, std::string>> dead;
  std::map<std::string, std::string> statuses;
  for (const auto& [id, index] : taken_) {
    const Submitted& one = documents_[index];
    events += one.events;
    notifications += one.notifications;
    statuses[id] = one.status;
    if (!one.stage.empty()) dead.insert({one.stage, id});
  }
  for (const auto& letter : verdict.at("deadLetters")) {
    if (dead.erase({letter.at("service"), letter.at("documentId")}) == 0) {
      problem("a dead letter that is no poison: " + letter.dump());
    }
  }
  for (const auto& [stage, id] : dead) problem("no dead letter of " + id + " in " + stage);
  const auto database = platform_.database("ingestion");
  const auto stored = database->query("SELECT id, status FROM documents").value();
  for (const auto& row : stored) {
    const auto wanted = statuses.extract(row.text(0));
    if (wanted.empty()) {
      problem("document " + row.text(0) + " was stored, and nobody was told so");
    } else if (wanted.mapped() != row.text(1)) {
      problem("document " + row.text(0) + " is " + row.text(1) + ", not " + wanted.mapped());
    }
  }
  for (const auto& [id, status] : statuses) problem("document " + id + " is lost");
  const auto same = [&](const char* what, std::int64_t wanted) {
    if (verdict.at(what) == wanted) return;
    problem(std::to_string(wanted) + " " + what + " were to be, not " + verdict.at(what).dump());
  };
  same("events", events);
  same("sealed", events);
  same("notifications", notifications);
  return problems;
}

}  // namespace baton::test
