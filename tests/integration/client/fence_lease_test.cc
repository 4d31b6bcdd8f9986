// A fence covers a whole lease: every name of a set and every ancestor. The same on every database
// that has a fence, and the same as the rule in src/core/fence.cc.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include "baton/fence.h"
#include "baton/locks.h"
#include "baton/memory_store.h"
#include "support/postgres_database.h"
#include "support/redis_server.h"
#include "support/seed.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using Tokens = std::vector<FenceToken>;

// One fenced transaction each, that writes nothing else.
class PostgresData {
 public:
  PostgresData() { install_fence(session_.get()).value(); }
  Result<void> write(const Tokens& tokens) {
    session_.sql("BEGIN");
    auto passed = fence(session_.get(), tokens);
    session_.sql(passed ? "COMMIT" : "ROLLBACK");
    return passed;
  }
  // As in any other language.
  bool write_text(const std::string& lease) {
    try {
      session_.sql("SELECT public.baton_fence('" + lease + "')");
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  Result<void> write_alone(const Tokens& tokens) { return fence_alone(session_.get(), tokens); }
  std::string all_that_is_recorded() {
    return session_.sql(
        "SELECT string_agg(name || tokens::text, ',' ORDER BY name) FROM baton_fence.seen");
  }
  void forget() { session_.sql("DELETE FROM baton_fence.seen"); }

 private:
  Database database_;
  Session session_{database_.url()};
};

class SqliteData {
 public:
  SqliteData() {
    sqlite3_open((directory_ / "data.db").c_str(), &database_);
    install_fence(database_).value();
  }
  ~SqliteData() { sqlite3_close(database_); }
  SqliteData(const SqliteData&) = delete;
  SqliteData& operator=(const SqliteData&) = delete;

  Result<void> write(const Tokens& tokens) {
    sql("BEGIN IMMEDIATE");
    auto passed = fence(database_, tokens);
    sql(passed ? "COMMIT" : "ROLLBACK");
    return passed;
  }
  // The statement that the manual prints, with what a user may give it.
  bool write_text(const std::string& lease) {
    std::ifstream file(BATON_SOURCE_DIR "/src/store/sqlite/fence_check.sql");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database_, text.c_str(), -1, &statement, nullptr);
    sqlite3_bind_text(statement, 1, lease.data(), static_cast<int>(lease.size()), SQLITE_TRANSIENT);
    int rows = 0;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) ++rows;
    sqlite3_finalize(statement);
    return code == SQLITE_DONE && rows > 0;
  }
  Result<void> write_alone(const Tokens& tokens) { return fence_alone(database_, tokens); }
  std::string all_that_is_recorded() {
    return sql(
        "SELECT group_concat(name || is_token || '/' || ix_token || '/' || s_token || '/' ||"
        " u_token || '/' || six_token || '/' || x_token) FROM baton_fence");
  }
  void forget() { sql("DELETE FROM baton_fence"); }

 private:
  std::string sql(const std::string& text) {
    std::string answer;
    sqlite3_exec(
        database_, text.c_str(),
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0] != nullptr ? values[0] : "";
          return 0;
        },
        &answer, nullptr);
    return answer;
  }
  TempDir directory_;
  sqlite3* database_ = nullptr;
};

class RedisData {
 public:
  RedisData() : connection_(redisConnect("127.0.0.1", server_.port())) {}
  ~RedisData() { redisFree(connection_); }
  RedisData(const RedisData&) = delete;
  RedisData& operator=(const RedisData&) = delete;

  Result<void> write(const Tokens& tokens) {
    if (auto passed = fence(connection_, tokens); !passed) return passed;
    command("MULTI");
    command("SET data x");
    command("EXEC");
    return {};
  }
  bool write_text(const std::string& lease) {
    const std::string script = std::string(redis_fence_script()) +
                               "local newer = baton_fence_lease(ARGV[1])\n"
                               "if newer then return redis.error_reply('FENCED ' .. newer) end";
    try {
      server_.ask({"EVAL", script, "0", lease});
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  Result<void> write_alone(const Tokens& tokens) { return fence_alone(connection_, tokens); }
  std::string all_that_is_recorded() {
    return server_.ask({"EVAL",
                        "local all, keys = '', redis.call('KEYS', 'baton_fence:*')\n"
                        "table.sort(keys)\n"
                        "for _, key in ipairs(keys) do\n"
                        "  all = all .. key\n"
                        "  for _, mode in ipairs({'IS', 'IX', 'S', 'U', 'SIX', 'X'}) do\n"
                        "    all = all .. '/' .. (redis.call('HGET', key, mode) or 0)\n"
                        "  end\n"
                        "end\n"
                        "return all",
                        "0"});
  }
  void forget() { server_.ask({"FLUSHALL"}); }

 private:
  void command(const char* text) { freeReplyObject(redisCommand(connection_, text)); }
  RedisServer server_;
  redisContext* connection_;
};

template <typename Data>
class FenceLease : public ::testing::Test {
 protected:
  // One server, or database, for all tests of a kind.
  static void SetUpTestSuite() { data_ = std::make_unique<Data>(); }
  static void TearDownTestSuite() { data_.reset(); }
  void SetUp() override { data_->forget(); }

  static Code outcome(const Result<void>& written) {
    return written ? Code::busy : written.error().code;  // busy stands for: written
  }
  static constexpr Code kWritten = Code::busy;
  static inline std::unique_ptr<Data> data_;
};

struct Names {
  template <typename Data>
  static std::string GetName(int) {
    if (std::is_same_v<Data, PostgresData>) return "postgres";
    return std::is_same_v<Data, SqliteData> ? "sqlite" : "redis";
  }
};
using AllData = ::testing::Types<PostgresData, SqliteData, RedisData>;
TYPED_TEST_SUITE(FenceLease, AllData, Names);

// Real leases, of a store that is elsewhere.
struct Locks {
  explicit Locks(Policy policy = {}) {
    if (policy.subjects.empty()) return;
    Request schema;
    schema.verb = Verb::acquire;
    schema.grant = GrantId{1, 1};
    schema.targets = {{"BATON:schema", Mode::X}};
    schema.owner = "policy";
    schema.channel = "policy";
    schema.ttl = Millis(1);
    policy.version = 1;
    schema.change = {.ordinal = 1, .text = to_stored(policy)};
    EXPECT_TRUE(store->apply({&schema, 1}, BootClock::now() + Millis(10'000)));
  }
  Lease take(const std::vector<LockName>& names, Mode mode = Mode::X) {
    auto client = LockClient::make(store, {.owner = "a"}).value();
    auto lease = client.acquire_all(names, {.mode = mode, .ttl = Millis(60'000)});
    EXPECT_TRUE(lease) << lease.error().message;
    return std::move(*lease);
  }
  std::shared_ptr<LockStore> store = make_memory_store();
};

TYPED_TEST(FenceLease, an_overtaken_holder_of_any_name_of_a_set_cannot_write) {
  Locks locks;
  const LockName a{.subject = "a"};
  const LockName b{.subject = "b"};
  Lease both = locks.take({a, b});
  const Tokens old = both.tokens();
  ASSERT_EQ(old.size(), 2U);
  EXPECT_EQ(this->outcome(this->data_->write(old)), this->kWritten);
  both.release().value();
  EXPECT_EQ(this->outcome(this->data_->write(locks.take({b}).tokens())), this->kWritten);
  EXPECT_EQ(this->outcome(this->data_->write(old)), Code::fenced);
}

TYPED_TEST(FenceLease, an_overtaken_holder_of_a_page_cannot_write_after_one_of_the_document) {
  Policy policy;
  policy.subjects["page"].parent = "document";
  policy.subjects["document"];
  Locks locks(policy);
  Lease page = locks.take({{.subject = "page", .resources = {"7", "1"}}});
  const Tokens old = page.tokens();
  ASSERT_EQ(old.size(), 2U);
  EXPECT_EQ(this->outcome(this->data_->write(old)), this->kWritten);
  page.release().value();
  Lease document = locks.take({{.subject = "document", .resources = {"7"}}});
  EXPECT_EQ(this->outcome(this->data_->write(document.tokens())), this->kWritten);
  EXPECT_EQ(this->outcome(this->data_->write(old)), Code::fenced);
  document.release().value();
  // And the other way round: the document's holder after one of a page.
  EXPECT_EQ(this->outcome(this->data_->write(
                locks.take({{.subject = "page", .resources = {"7", "2"}}}).tokens())),
            this->kWritten);
  EXPECT_EQ(this->outcome(this->data_->write(document.tokens())), Code::fenced);
}

TYPED_TEST(FenceLease, holders_of_different_pages_do_not_refuse_each_other) {
  const Tokens first{{"DEFAULT:page:7:1", Mode::X, 5}, {"DEFAULT:document:7", Mode::IX, 6}};
  const Tokens second{{"DEFAULT:page:7:2", Mode::X, 7}, {"DEFAULT:document:7", Mode::IX, 8}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(this->outcome(this->data_->write(second)), this->kWritten);
    EXPECT_EQ(this->outcome(this->data_->write(first)), this->kWritten);
  }
}

TYPED_TEST(FenceLease, a_refused_lease_leaves_no_trace) {
  const Tokens newer{{"DEFAULT:b", Mode::X, 9}};
  EXPECT_EQ(this->outcome(this->data_->write(newer)), this->kWritten);
  const std::string before = this->data_->all_that_is_recorded();
  const Tokens older{
      {"DEFAULT:a", Mode::X, 8}, {"DEFAULT:b", Mode::X, 8}, {"DEFAULT:c", Mode::X, 8}};
  EXPECT_EQ(this->outcome(this->data_->write(older)), Code::fenced);
  EXPECT_EQ(this->outcome(this->data_->write_alone(older)), Code::fenced);
  EXPECT_FALSE(this->data_->write_text(print_fence_tokens(older)));
  EXPECT_EQ(this->data_->all_that_is_recorded(), before);
}

TYPED_TEST(FenceLease, a_successor_that_has_only_shown_its_tokens_keeps_its_predecessor_out) {
  const Tokens old{{"DEFAULT:a", Mode::X, 5}};
  EXPECT_EQ(this->outcome(this->data_->write(old)), this->kWritten);
  EXPECT_EQ(this->outcome(this->data_->write_alone({{"DEFAULT:a", Mode::X, 6}})), this->kWritten);
  EXPECT_EQ(this->outcome(this->data_->write(old)), Code::fenced);
}

TYPED_TEST(FenceLease, what_is_no_lease_is_refused) {
  using T = FenceToken;
  for (const Tokens& wrong :
       {Tokens{}, Tokens{T{"", Mode::X, 5}}, Tokens{T{"DEFAULT:a", Mode::X, 0}},
        Tokens{T{"DEFAULT:a", Mode::X, 5}, T{"DEFAULT:b", Mode::X, kMaxFenceToken + 1}},
        Tokens(kMaxFenceTokens + 1, T{"DEFAULT:a", Mode::X, 5})}) {
    EXPECT_EQ(this->outcome(this->data_->write(wrong)), Code::bad_request);
  }
  for (const char* wrong :
       {"", "5", "[]", "{", R"([{"name":"a","mode":"Y","token":"5"}])",
        R"([{"name":"a","mode":"X"}])", R"([{"name":"a","mode":"X","token":"0"}])",
        R"([{"name":"a","mode":"X","token":"4611686018427387905"}])",
        R"([{"name":"a","mode":"X","token":"9223372036854775808"}])"}) {
    EXPECT_FALSE(this->data_->write_text(wrong)) << wrong;
  }
  EXPECT_EQ(this->outcome(this->data_->write({{"DEFAULT:a", Mode::X, 1}})), this->kWritten);
  EXPECT_TRUE(this->data_->write_text(R"([{"name":"a","mode":"X","token":5}])")) << "a number";
  EXPECT_EQ(this->outcome(this->data_->write({{"DEFAULT:a", Mode::X, kMaxFenceToken}})),
            this->kWritten);
}

// What no store writes, a fence does not guess at: a token that was cut short, or read by one fence
// as another number than by the next, would let an old holder in.
TYPED_TEST(FenceLease, a_token_is_a_whole_number_in_plain_digits_and_a_name_is_text) {
  const std::string long_name(1025, 'n');
  const auto entry = [](const std::string& name, const std::string& token) {
    return R"([{"name":)" + name + R"(,"mode":"X","token":)" + token + "}]";
  };
  for (const char* token : {"4.5",
                            R"("4.5")",
                            R"("4.0")",
                            R"("4e1")",
                            R"("42x")",
                            R"("x42")",
                            R"("0x2a")",
                            R"(" 42")",
                            R"("42 ")",
                            R"("+42")",
                            R"("042")",
                            R"("42\u0000x")",
                            R"("")",
                            R"("-42")",
                            "-42",
                            "0",
                            "true",
                            "null",
                            R"(["42"])",
                            R"({"a":42})",
                            R"("99999999999999999999")",
                            "99999999999999999999"}) {
    EXPECT_FALSE(this->data_->write_text(entry(R"("a")", token))) << token;
    EXPECT_FALSE(parse_fence_tokens(entry(R"("a")", token))) << token;
  }
  for (const std::string& name :
       {std::string(R"("")"), std::string("5"), std::string("null"), std::string(R"(["a"])"),
        std::string(R"("a\u0000b")"), '"' + long_name + '"'}) {
    EXPECT_FALSE(this->data_->write_text(entry(name, R"("42")"))) << name;
    EXPECT_FALSE(parse_fence_tokens(entry(name, R"("42")"))) << name;
  }
  for (const char* lease :
       {R"([{"mode":"X","token":"42"}])", R"({"name":"a","mode":"X","token":"42"})",
        R"({"b":{"name":"a","mode":"X","token":"42"}})", R"(["a"])", "[5]",
        R"([{"name":"a","mode":"","token":"42"}])",
        R"([{"name":"a","mode":"X","token":"42"},5])"}) {
    EXPECT_FALSE(this->data_->write_text(lease)) << lease;
    EXPECT_FALSE(parse_fence_tokens(lease)) << lease;
  }
  std::string many;
  for (std::size_t i = 0; i <= kMaxFenceTokens; ++i) {
    many += (i == 0 ? "[" : ",") + (R"({"name":"n)" + std::to_string(i)) +
            R"(","mode":"X","token":"1"})";
  }
  EXPECT_FALSE(this->data_->write_text(many + "]"));
  this->data_->forget();
  EXPECT_TRUE(this->data_->write_text(entry(R"("a")", R"("1")"))) << "nothing was recorded";
}

// The fence as the rule has it.
class Model {
 public:
  bool passes(const Tokens& tokens) {
    for (const FenceToken& mine : tokens) {
      const auto ends_mine = [&](const FenceToken& other) { return overtakes(other, mine); };
      if (std::any_of(seen_.begin(), seen_.end(), ends_mine)) return false;
      if (std::any_of(tokens.begin(), tokens.end(), ends_mine)) return false;
    }
    seen_.insert(seen_.end(), tokens.begin(), tokens.end());
    return true;
  }

 private:
  Tokens seen_;
};

TYPED_TEST(FenceLease, it_decides_as_the_rule_does_over_random_histories) {
  std::mt19937 random(static_cast<unsigned>(seed_or(20261118)));
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (int history = 0; history < 20; ++history) {
    this->data_->forget();
    Model model;
    for (unsigned step = 0; step < 30; ++step) {
      Tokens tokens;
      for (unsigned left = 1 + below(4); left > 0; --left) {
        tokens.push_back({"DEFAULT:" + std::string(1, static_cast<char>('a' + below(4))),
                          kAllModes.at(below(6)), 1 + step / 2 + below(6)});
      }
      const bool expected = model.passes(tokens);
      const std::string text = print_fence_tokens(tokens);
      const bool passed =
          step % 3 == 0 ? this->data_->write_text(text) : this->data_->write(tokens).has_value();
      ASSERT_EQ(passed, expected) << "step " << step << " of history " << history << ": " << text;
    }
  }
}

TYPED_TEST(FenceLease, a_lease_that_holds_the_most_names_fits) {
  Tokens many;
  for (std::size_t i = 0; i < kMaxSet; ++i) {
    many.push_back({"DEFAULT:page:" + std::to_string(i), Mode::X, 5});
  }
  EXPECT_EQ(this->outcome(this->data_->write(many)), this->kWritten);
  many.back().token = 4;
  EXPECT_EQ(this->outcome(this->data_->write(many)), Code::fenced);
}

}  // namespace
}  // namespace baton::test
