// A request with an Idempotency-Key has one effect, however often it is sent, to which replica, and
// whichever replica dies meanwhile.

#include <thread>

#include "api_fixture.h"

namespace baton::test {
namespace {

using nlohmann::json;

Call with_key(const std::string& key, const std::string& title = "A letter") {
  return {.body = a_document(title).dump(),
          .headers = {"Content-Type: application/json", "Idempotency-Key: " + key}};
}

class Idempotency : public DocumentsApi {
 protected:
  static std::int64_t documents(const std::string& title) {
    return rows("ingestion", "SELECT count(*) FROM documents WHERE title = $1", {title});
  }
  static std::int64_t keys(const std::string& key) {
    return rows("ingestion", "SELECT count(*) FROM idempotency_keys WHERE key = $1", {key});
  }
  // As a client does: again after 409, 503 and no answer.
  static HttpAnswer patiently(const std::string& instance, const Call& asked) {
    HttpAnswer last;
    EXPECT_TRUE(poll_until([&] {
      const int port = platform().port(instance);
      const auto answer = port == 0 ? std::nullopt : ask(port, asked);
      if (!answer || answer->status == 409 || answer->status == 503) return false;
      last = read(instance, asked, answer);
      return true;
    }));
    return last;
  }
  static void wait_for_the_next(const std::string& instance, pid_t killed) {
    ASSERT_TRUE(poll_until([&] {
      const pid_t next = platform().pid(instance);
      return next != 0 && next != killed;
    }));
  }
};

TEST_F(Idempotency, the_same_answer_comes_again_from_every_replica) {
  const Call asked = with_key("again", "Again");
  const auto first = call("ingestion-1", asked);
  ASSERT_EQ(first.status, 201) << first.body;
  for (const char* instance : {"ingestion-1", "ingestion-2"}) {
    Call repeated = asked;
    repeated.headers.emplace_back("X-Correlation-Id: another");
    const auto again = call(instance, repeated);
    EXPECT_EQ(again.status, 201);
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(again.headers.at("location"), first.headers.at("location"));
    EXPECT_EQ(again.headers.at("x-correlation-id"), first.headers.at("x-correlation-id"));
  }
  EXPECT_EQ(documents("Again"), 1);
}

TEST_F(Idempotency, another_body_is_422_but_the_same_in_another_order_is_the_same) {
  ASSERT_EQ(call("ingestion-1", with_key("other", "Other")).status, 201);
  EXPECT_EQ(call("ingestion-2", with_key("other", "Another")).status, 422);
  EXPECT_EQ(documents("Another"), 0);
  Call reordered = with_key("other");
  reordered.body = R"({ "content": "Dear Bob, this is the letter that you asked for.",)"
                   R"( "owner": "ann", "title": "Other", "contentType": "text/plain" })";
  EXPECT_EQ(call("ingestion-1", reordered).status, 201);
  EXPECT_EQ(documents("Other"), 1);
}

TEST_F(Idempotency, a_refused_request_uses_up_no_key) {
  Call wrong = with_key("refused");
  wrong.body = "{}";
  EXPECT_EQ(call("ingestion-1", wrong).status, 422);
  EXPECT_EQ(keys("refused"), 0);
  EXPECT_EQ(call("ingestion-1", with_key("refused")).status, 201);
}

TEST_F(Idempotency, of_requests_that_race_on_two_replicas_one_stores_and_all_get_its_answer) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "race-" + std::to_string(round);
    const Call asked = with_key(name, name);
    std::vector<std::optional<HttpAnswer>> answers(8);
    {
      std::vector<std::jthread> clients;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        clients.emplace_back([&, i] {
          answers[i] = ask(platform().port(i % 2 == 0 ? "ingestion-1" : "ingestion-2"), asked);
        });
      }
    }
    const auto settled = patiently("ingestion-1", asked);
    ASSERT_EQ(settled.status, 201) << settled.body;
    for (const auto& answer : answers) {
      const auto seen = read("ingestion-1", asked, answer);
      EXPECT_TRUE(seen.status == 201 || seen.status == 409) << seen.status << seen.body;
      if (seen.status == 409) {
        EXPECT_EQ(seen.headers.count("retry-after"), 1U);
      } else {
        EXPECT_EQ(seen.body, settled.body);
      }
    }
    EXPECT_EQ(documents(name), 1);
  }
}

TEST_F(Idempotency, a_key_is_kept_for_24_hours) {
  const auto first = call("ingestion-1", with_key("old", "Old"));
  ASSERT_EQ(first.status, 201);
  const auto age = [&](const char* hours) {
    const std::string sql =
        on_servers() ? "UPDATE idempotency_keys SET created_at = now() - $1::interval WHERE key = "
                       "'old'"
                     : "UPDATE idempotency_keys SET created_at ="
                       " strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || $1) WHERE key = 'old'";
    ASSERT_TRUE(platform().database("ingestion")->query(sql, {std::string(hours)}));
  };
  age("23 hours");
  EXPECT_EQ(call("ingestion-1", with_key("old", "Old")).body, first.body);
  EXPECT_EQ(call("ingestion-1", with_key("old", "New")).status, 422);
  age("25 hours");
  const auto later = call("ingestion-2", with_key("old", "New"));
  EXPECT_EQ(later.status, 201);
  EXPECT_NE(later.body, first.body);
  age("25 hours");
  EXPECT_TRUE(poll_until([&] { return keys("old") == 0; })) << "old keys are removed";
  EXPECT_EQ(documents("Old") + documents("New"), 2);
}

// The document is committed, its client has not read the answer, and the replica dies.
TEST_F(Idempotency, after_a_kill_behind_the_commit_the_repetition_gets_the_answer) {
  const Call asked = with_key("behind", "Behind");
  HttpClient client(platform().port("ingestion-1"));
  ASSERT_TRUE(client.send("POST /documents HTTP/1.1\r\nHost: localhost\r\n" + asked.headers[0] +
                          "\r\n" + asked.headers[1] + "\r\nContent-Length: " +
                          std::to_string(asked.body.size()) + "\r\n\r\n" + asked.body));
  ASSERT_TRUE(poll_until([&] { return documents("Behind") == 1; }));
  const pid_t killed = platform().pid("ingestion-1");
  ::kill(killed, SIGKILL);
  wait_for_the_next("ingestion-1", killed);
  const auto answer = patiently("ingestion-1", asked);
  ASSERT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(documents("Behind"), 1);
  const std::string id = json::parse(answer.body).at("id");
  EXPECT_EQ(rows("ingestion", "SELECT count(*) FROM documents WHERE title = $1 AND id = $2",
                 {std::string("Behind"), id}),
            1);
  EXPECT_TRUE(platform().reaches(id, "ENRICHED"));
}

// The replica dies with its transaction open. Somebody else holds what it waits for, so that it
// cannot have committed.
TEST_F(Idempotency, a_kill_before_the_commit_leaves_nothing_and_the_key_is_free) {
  const Call asked = with_key("before", "Before");
  HttpClient client(platform().port("ingestion-1"));
  pid_t killed = 0;
  {
    const auto database = platform().database("ingestion");
    auto holder = sql::Transaction::begin(*database).value();
    if (on_servers()) {
      ASSERT_TRUE(holder.query(std::string("LOCK TABLE documents IN SHARE ROW EXCLUSIVE MODE")));
    }
    ASSERT_TRUE(client.send("POST /documents HTTP/1.1\r\nHost: localhost\r\n" + asked.headers[0] +
                            "\r\n" + asked.headers[1] + "\r\nContent-Length: " +
                            std::to_string(asked.body.size()) + "\r\n\r\n" + asked.body));
    if (on_servers()) {
      const auto watcher = platform().database("ingestion");
      ASSERT_TRUE(poll_until([&] {
        return watcher
                   ->query(
                       "SELECT count(*) FROM pg_stat_activity WHERE datname ="
                       " current_database() AND wait_event_type = 'Lock'"
                       " AND query LIKE 'INSERT INTO documents%'")
                   .value()
                   .front()
                   .integer(0) == 1;
      }));
      // Its key is taken, also on the other replica, which does not wait.
      EXPECT_EQ(call("ingestion-2", asked).status, 409);
    }
    killed = platform().pid("ingestion-1");
    ::kill(killed, SIGKILL);
  }
  wait_for_the_next("ingestion-1", killed);
  EXPECT_EQ(documents("Before"), 0);
  const auto answer = patiently("ingestion-2", asked);
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(documents("Before"), 1);
}

}  // namespace
}  // namespace baton::test
