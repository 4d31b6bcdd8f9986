// With --json every command prints one JSON document, and nothing else, whether it succeeds or not.

#include <fstream>
#include <set>

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

using Json = nlohmann::json;

class CliJson : public CliTest {
 protected:
  // A command line on which the command does its work, and how it exits. Those that ask something
  // may have the answer that they exit with; it is a result, not an error.
  struct Row {
    Words words;
    std::set<int> codes{0};
  };

  Words in_json(Words words, const Words& more = {}) const {
    words.emplace_back("--json");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static std::string shown(const Words& words) {
    std::string out = "baton";
    for (const auto& word : words) out += " " + word;
    return out;
  }

  // One line, one object; null if it is anything else.
  static Json document(const std::string& text) {
    if (text.find('\n') != text.size() - 1) return nullptr;
    const Json parsed = Json::parse(text, nullptr, false);
    return parsed.is_object() ? parsed : Json(nullptr);
  }

  void gives_a_document(const Row& row) const {
    const auto words = in_json(row.words);
    const auto done = baton(words);
    EXPECT_TRUE(row.codes.contains(done.status.code)) << shown(words) << "\n" << done.err;
    const Json result = document(done.out);
    EXPECT_TRUE(result.is_object()) << shown(words) << "\n" << done.out;
    EXPECT_FALSE(result.contains("error")) << shown(words) << "\n" << done.out;
    EXPECT_EQ(done.err, "") << shown(words);
  }

  void gives_an_error(const Words& words, int exit_code, const std::string& code) const {
    const auto failed = baton(words);
    EXPECT_EQ(failed.status.code, exit_code) << shown(words) << "\n" << failed.err;
    EXPECT_EQ(failed.out, "") << shown(words);
    const Json error = document(failed.err);
    ASSERT_TRUE(error.is_object()) << shown(words) << "\n" << failed.err;
    EXPECT_EQ(error.size(), 1U) << failed.err;
    EXPECT_EQ(error["error"]["code"], code) << shown(words) << "\n" << failed.err;
    EXPECT_TRUE(error["error"]["message"].is_string()) << failed.err;
    EXPECT_TRUE(error["error"]["retryable"].is_boolean()) << failed.err;
  }

  bool shows(const Words& words, const std::string& part) const {
    return poll_until([&] { return baton(words).out.find(part) != std::string::npos; }, patience,
                      std::chrono::milliseconds(50));
  }

  // A job that ran, of a scheduler that has gone.
  void leave_a_job() const {
    Process replica({.argv = {BATON_JOB_REPLICA, "url=" + store(), "node=node-a", "names=report",
                              "every=3600000", "run=1", "history=" + (dir_ / "history").string()}});
    ASSERT_TRUE(replica.wait_for_out("ready")) << replica.err();
    ASSERT_TRUE(shows({"job", "show", "report"}, "fire 1 on node-a"));
    replica.close_stdin();
    ASSERT_TRUE(replica.wait());
  }

  // A lock of which the store knows nothing that makes sense.
  void leave_a_damaged_lock() const {
    ASSERT_EQ(baton({"run", "hurt", "--at-least-for", "1h", "--", "true"}).status.code, 0);
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / "locks.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    EXPECT_EQ(sqlite3_exec(database, "UPDATE baton_lock SET doc = '{' WHERE key = 'DEFAULT:hurt'",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(database);
  }

  std::string policy() const {
    const auto path = dir_ / "locks.yaml";
    std::ofstream(path) << "subjects: {audit: {modes: [exclusive]}}\n";
    return path.string();
  }

  std::string topology() const {
    const auto path = dir_ / "events.yaml";
    std::ofstream(path) << "exchanges: {events: {}}\nqueues: {audit: {}}\n"
                           "bindings: [{exchange: events, pattern: '#', queue: audit}]\n";
    return path.string();
  }

  std::string broker() const { return "embedded:" + (dir_ / "events.db").string(); }

  // The database of a fence.
  std::string data() const {
    const auto path = dir_ / "data.db";
    std::ofstream(path, std::ios::app).flush();  // it must be there
    return "sqlite:" + path.string();
  }

  void leave_an_event() const {
    for (const auto* box : {"outbox", "inbox", "processor"}) {
      ASSERT_EQ(baton({box, "install", "--database", data()}).status.code, 0);
    }
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / "data.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    const std::string insert =
        "INSERT INTO outbox_events (event_id, type, aggregate_id, routing_key) VALUES ('" + event_ +
        "', 'T', 'a', 'k'); INSERT INTO inbox_events (consumer, queue, status, event_id, type,"
        " aggregate_type, aggregate_id, exchange, routing_key, payload, headers, version,"
        " message_id, content_type) VALUES ('c', 'q', 'DEAD', '" +
        event_ +
        "', 'T', '', 'a', '', 'k', '{}', '{}', 1, 'm', 'application/json');"
        " CREATE TABLE totals (total INTEGER);"
        " INSERT INTO event_processor (name, kind, tables) VALUES ('totals', 'view', 'totals')";
    EXPECT_EQ(sqlite3_exec(database, insert.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  const std::string event_ = "01990a3e-0000-7000-8000-000000000001";

  // In an order in which they can be done.
  std::vector<Row> rows() const {
    return {
        {{"store", "migrate"}},
        {{"store", "status"}},
        {{"store", "doctor"}, {0, 1}},  // it may find fault with the machine
        {{"policy", "check", policy()}},
        {{"policy", "show"}},
        {{"lock", "find"}},
        {{"lock", "list"}},
        {{"lock", "show", "job"}},
        {{"lock", "show", "free"}},
        {{"lock", "stats"}},
        {{"lock", "break", "job", "--reason", "r"}},
        {{"lock", "break", "again", "--reason", "r", "--now"}},
        {{"lock", "forget", "hurt", "--damaged"}},
        {{"fence", "install", "--database", data()}},
        {{"fence", "check", "job", "9", "--database", data()}},
        {{"fence", "rebase", "--database", data()}},
        {{"leader", "show", "nobody"}, {75}},
        {{"leader", "resign", "nobody"}, {75}},
        {{"leader", "transfer", "nobody", "b"}, {75}},
        {{"leader", "show", "outbox"}},
        {{"leader", "is-me", "outbox", "--node", "a"}},
        {{"leader", "is-me", "outbox", "--node", "nobody"}, {75}},
        {{"leader", "transfer", "outbox", "b"}},
        {{"leader", "resign", "outbox"}, {0, 75}},  // b may not have come yet
        {{"job", "list"}},
        {{"job", "show", "report"}},
        {{"job", "history", "report"}},
        {{"job", "pause", "report"}},
        {{"job", "resume", "report"}},
        {{"job", "skip", "report"}},
        {{"job", "run", "report"}},
        {{"job", "forget", "report"}},
        {{"node", "list"}},
        {{"partition", "list"}},
        {{"outbox", "install", "--database", data()}},
        {{"outbox", "status", "--database", data()}, {1}},  // nobody reads it
        {{"outbox", "list", "--database", data()}},
        {{"outbox", "show", event_, "--database", data()}},
        {{"outbox", "retry", "--all", "--dry-run", "--database", data()}},
        {{"outbox", "discard", "--all", "--yes", "--database", data()}},
        {{"outbox", "clean", "--database", data()}},
        {{"inbox", "install", "--database", data()}},
        {{"inbox", "status", "--database", data()}, {1}},  // a dead letter
        {{"inbox", "list", "--database", data()}},
        {{"inbox", "show", event_, "--database", data()}},
        {{"dlq", "list", "--database", data()}},
        {{"dlq", "show", event_, "--database", data()}},
        {{"dlq", "export", "--database", data()}},
        {{"dlq", "redrive", "--all", "--dry-run", "--database", data()}},
        {{"dlq", "discard", "--all", "--yes", "--database", data()}},
        {{"processor", "install", "--database", data()}},
        {{"processor", "list", "--database", data()}},
        {{"processor", "show", "totals", "--database", data()}},
        {{"processor", "pause", "totals", "--database", data()}},
        {{"processor", "resume", "totals", "--database", data()}},
        {{"processor", "reset", "totals", "--yes", "--database", data()}},
        {{"processor", "rebuild", "totals", "--no-wait", "--database", data()}},
        {{"topology", "plan", topology(), "--broker", broker()}},
        {{"topology", "check", topology(), "--broker", broker()}, {1}},
        {{"topology", "apply", topology(), "--broker", broker()}},
        {{"topology", "check", topology(), "--broker", broker()}},
        {{"queue", "list", topology(), "--broker", broker()}},
        {{"broker", "doctor", topology(), "--broker", broker()}, {0, 1}},  // of the machine, too
        {{"policy", "apply", policy()}},  // after it, who runs gets no new lock until its restart
        {{"policy", "show"}},
        {{"version"}},
        {{"completion", "bash"}},
        {{"completion", "zsh"}},
        {{"completion", "fish"}},
    };
  }
};

TEST_F(CliJson, every_command_prints_one_document_if_it_does_its_work) {
  leave_a_job();
  leave_a_damaged_lock();
  leave_an_event();
  const std::string script = "echo ready; while :; do sleep 0.05; done";
  auto job = hold("job", script);
  auto again = hold("again", script);
  const auto stand = [&](const std::string& node) {
    return start({"elect", "outbox", "--node", node, "--", "sleep", "600"});
  };
  auto first = stand("a");
  ASSERT_TRUE(shows({"leader", "show", "outbox", "--json"}, "\"node\":\"a\""));
  auto second = stand("b");
  ASSERT_TRUE(shows({"leader", "show", "outbox", "--json"}, "\"candidates\":1"));

  std::set<Words> tried;
  for (const Row& row : rows()) {
    tried.insert({row.words[0], row.words.size() > 1 ? row.words[1] : ""});
    gives_a_document(row);
  }
  for (const Help& help : all_help()) {
    if (!help.subcommands.empty()) continue;
    const auto& command = help.command;
    if (command == Words{"run"} || command == Words{"elect"}) continue;  // see below
    if (command == Words{"hold"}) continue;  // its stdout has a line for each event
    // They run until they are told to end; cli_cron_file_test has what `cron --check` prints.
    if (command == Words{"relay"} || command == Words{"cron"}) continue;
    if (command == Words{"help"}) continue;  // text for people
    const bool found = command.size() == 1
                           ? std::any_of(tried.begin(), tried.end(),
                                         [&](const Words& words) { return words[0] == command[0]; })
                           : tried.contains(command);
    EXPECT_TRUE(found) << shown(command) << " is in no row";
  }
}

TEST_F(CliJson, every_command_prints_one_error_if_there_is_no_such_store) {
  ASSERT_EQ(baton({"fence", "install", "--database", data()}).status.code, 0);
  const Words elsewhere{"--store", "nonsense:"};
  for (const Row& row : rows()) {
    const Words command(row.words.begin(), row.words.begin() + std::min<int>(2, row.words.size()));
    if (command[0] == "version" || command[0] == "completion") continue;
    const auto options = help(command).options;
    if (std::find(options.begin(), options.end(), "--store") == options.end()) continue;
    gives_an_error(in_json(row.words, elsewhere), 2, "bad_url");
  }
  for (const auto* verb : {"run", "elect"}) {
    gives_an_error(in_json({verb, "job"}, {"--store", "nonsense:", "--", "true"}), 2, "bad_url");
  }
}

TEST_F(CliJson, every_command_prints_one_error_if_it_is_not_understood) {
  for (const Help& help : all_help()) {
    gives_an_error(in_json(help.command, {"--nonsense"}), 2, "usage");
  }
}

TEST_F(CliJson, what_runs_a_command_leaves_stdout_to_it_and_prints_objects_on_stderr) {
  for (const Words& verb : {Words{"run", "job"}, Words{"elect", "outbox"}}) {
    const auto words =
        in_json(verb, {"--metrics", "127.0.0.1:0", "--", "sh", "-c", "echo its own; exit 3"});
    const auto ran = baton(words);
    EXPECT_EQ(ran.status.code, 3) << ran.err;
    EXPECT_EQ(ran.out, "its own\n");
    std::istringstream lines(ran.err);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_TRUE(document(line + "\n").contains("event")) << line;
    }
    EXPECT_GT(count, 0);
  }
}

TEST_F(CliJson, a_completion_script_is_a_field) {
  const Json printed = document(baton({"completion", "bash", "--json"}).out);
  ASSERT_TRUE(printed.is_object());
  EXPECT_EQ(printed["shell"], "bash");
  EXPECT_EQ(printed["script"], baton({"completion", "bash"}).out);
}

}  // namespace
}  // namespace baton::test
