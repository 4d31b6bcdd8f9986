// A fence for data in Redis.

#include <array>
#include <functional>
#include <thread>

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "baton/fence.h"
#include "integration/redis/redis_support.h"
#include "support/wait.h"

namespace baton::test {
namespace {

// A connection on which every command is shown to `before` until it goes on to the server.
class Relay {
 public:
  using Before = std::function<void(std::string_view sent)>;
  Relay(int port, Before before) : server_(redisConnect("127.0.0.1", port)) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) {
      throw std::runtime_error("socketpair failed");
    }
    thread_ = std::thread([this, before = std::move(before)] { work(before); });
  }
  ~Relay() {
    shutdown(ends_[1], SHUT_RDWR);
    thread_.join();
    close(ends_[1]);
    redisFree(server_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] int client() const { return ends_[0]; }  // the caller closes it

 private:
  void work(const Before& before) {
    std::array<pollfd, 2> both{pollfd{ends_[1], POLLIN, 0}, pollfd{server_->fd, POLLIN, 0}};
    std::array<char, 65536> bytes{};
    for (;;) {
      poll(both.data(), both.size(), -1);
      for (std::size_t i = 0; i < 2; ++i) {
        if (both[i].revents == 0) continue;
        const auto got = read(both[i].fd, bytes.data(), bytes.size());
        if (got <= 0) return;
        const std::string_view sent(bytes.data(), static_cast<std::size_t>(got));
        if (i == 0) before(sent);
        if (::write(both[1 - i].fd, sent.data(), sent.size()) != got) return;
      }
    }
  }

  redisContext* server_;
  std::array<int, 2> ends_{};
  std::thread thread_;
};

class RedisFence : public RedisTest {
 protected:
  struct Close {
    void operator()(redisContext* connection) const { redisFree(connection); }
  };
  using Session = std::unique_ptr<redisContext, Close>;

  static Session session() { return Session(redisConnect("127.0.0.1", server_->port())); }

  static std::string command(redisContext* connection, const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    auto* reply = static_cast<redisReply*>(
        redisCommandArgv(connection, static_cast<int>(words.size()), texts.data(), sizes.data()));
    std::string text = reply->type == REDIS_REPLY_NIL ? "nil"
                       : reply->str == nullptr        ? "list"
                                                      : std::string(reply->str, reply->len);
    freeReplyObject(reply);
    return text;
  }

  // Writes under a token, as the manual says.
  static std::string write(redisContext* connection, Mode mode, Token token,
                           const std::string& value) {
    if (const auto fine = fence(connection, kJob, mode, token); !fine) {
      EXPECT_EQ(fine.error().code, Code::fenced) << fine.error().message;
      return "fenced";
    }
    command(connection, {"MULTI"});
    command(connection, {"SET", "data", value});
    return command(connection, {"EXEC"}) == "nil" ? "fenced" : "written";
  }
};

TEST_F(RedisFence, a_holder_that_was_overtaken_cannot_write) {
  const Session old = session();
  const Session young = session();
  EXPECT_EQ(write(old.get(), Mode::X, 5, "old"), "written");
  EXPECT_EQ(write(old.get(), Mode::X, 5, "old again"), "written");
  EXPECT_EQ(write(young.get(), Mode::X, 6, "young"), "written");
  EXPECT_EQ(write(old.get(), Mode::X, 5, "too late"), "fenced");
  EXPECT_EQ(ask({"GET", "data"}), "young");
}

TEST_F(RedisFence, a_holder_that_is_overtaken_between_its_fence_and_its_write_cannot_write) {
  const Session old = session();
  const Session young = session();
  ASSERT_TRUE(fence(old.get(), kJob, Mode::X, 5));
  EXPECT_EQ(write(young.get(), Mode::X, 6, "young"), "written");
  command(old.get(), {"MULTI"});
  command(old.get(), {"SET", "data", "old"});
  EXPECT_EQ(command(old.get(), {"EXEC"}), "nil");
  EXPECT_EQ(ask({"GET", "data"}), "young");
}

// Each makes the other repeat its transaction at most once, when it first records its token.
TEST_F(RedisFence, two_shared_holders_do_not_make_each_other_fail_for_ever) {
  const Session one = session();
  const Session two = session();
  const auto begin = [&](redisContext* connection, Token token) {
    ASSERT_TRUE(fence(connection, kJob, Mode::S, token));
    command(connection, {"MULTI"});
    command(connection, {"SET", "data", std::to_string(token)});
  };
  begin(one.get(), 5);
  begin(two.get(), 6);
  EXPECT_EQ(command(one.get(), {"EXEC"}), "nil") << "6 was recorded in between";
  EXPECT_EQ(command(two.get(), {"EXEC"}), "list");
  for (int i = 0; i < 3; ++i) {
    begin(one.get(), 5);
    begin(two.get(), 6);
    EXPECT_EQ(command(one.get(), {"EXEC"}), "list");
    EXPECT_EQ(command(two.get(), {"EXEC"}), "list");
  }
}

TEST_F(RedisFence, all_names_of_a_lease_are_watched) {
  const Session old = session();
  const Session young = session();
  const std::vector<FenceToken> both{{"DEFAULT:a", Mode::X, 5}, {"DEFAULT:b", Mode::X, 5}};
  for (const char* name : {"DEFAULT:a", "DEFAULT:b"}) {
    ask({"FLUSHALL"});
    ASSERT_TRUE(fence(old.get(), both));
    ASSERT_TRUE(fence_alone(young.get(), std::vector<FenceToken>{{name, Mode::X, 6}}));
    command(old.get(), {"MULTI"});
    command(old.get(), {"SET", "data", "old"});
    EXPECT_EQ(command(old.get(), {"EXEC"}), "nil") << name;
  }
}

// Somebody newer comes after the fence has recorded its token, and before it looks again.
TEST_F(RedisFence, a_refusal_leaves_no_watch_behind) {
  const Session young = session();
  Relay relay(server_->port(), [&](std::string_view sent) {
    if (sent.find("\r\nWATCH\r\n") == sent.npos) return;
    EXPECT_EQ(write(young.get(), Mode::X, 6, "young"), "written");
  });
  const Session old(redisConnectFd(relay.client()));
  EXPECT_EQ(fence(old.get(), kJob, Mode::X, 5).error().code, Code::fenced);
  EXPECT_EQ(write(young.get(), Mode::X, 7, "younger"), "written");
  command(old.get(), {"MULTI"});
  command(old.get(), {"SET", "other", "unfenced"});
  EXPECT_EQ(command(old.get(), {"EXEC"}), "list");
  EXPECT_EQ(ask({"GET", "other"}), "unfenced");
}

// A transaction of two locks: the second fence meets a script that runs long, and is asked again.
TEST_F(RedisFence, a_server_that_is_busy_does_not_make_it_forget_an_earlier_fence) {
  ask({"CONFIG", "SET", "lua-time-limit", "1"});
  const Session young = session();
  const Session looping = session();
  bool busy = false;
  Relay relay(server_->port(), [&](std::string_view sent) {
    if (busy || sent.find("\r\nWATCH\r\n") == sent.npos || sent.find("other") == sent.npos) return;
    redisAppendCommand(looping.get(), "EVAL %s 0", "while true do end");
    int done = 0;
    while (done == 0) ASSERT_EQ(redisBufferWrite(looping.get(), &done), REDIS_OK);
    busy = poll_until([&] { return command(young.get(), {"PING"}).starts_with("BUSY"); });
  });
  const Session old(redisConnectFd(relay.client()));
  ASSERT_TRUE(fence(old.get(), kJob, Mode::X, 5));
  const auto passing = fence(old.get(), "DEFAULT:other", Mode::X, 5);
  ASSERT_TRUE(busy);
  ASSERT_EQ(command(young.get(), {"SCRIPT", "KILL"}), "OK");
  ASSERT_FALSE(passing);
  EXPECT_TRUE(passing.error().retryable) << passing.error().message;
  ASSERT_TRUE(poll_until([&] { return command(young.get(), {"PING"}) == "PONG"; }));
  ASSERT_TRUE(fence(old.get(), "DEFAULT:other", Mode::X, 5));
  EXPECT_EQ(write(young.get(), Mode::X, 6, "young"), "written");
  command(old.get(), {"MULTI"});
  command(old.get(), {"SET", "data", "old"});
  EXPECT_EQ(command(old.get(), {"EXEC"}), "nil");
  EXPECT_EQ(ask({"GET", "data"}), "young");
  ask({"CONFIG", "SET", "lua-time-limit", "5000"});
}

TEST_F(RedisFence, only_modes_that_cannot_stand_beside_each_other_refuse_each_other) {
  const Session one = session();
  Token token = 100;
  for (const Mode newer : kAllModes) {
    for (const Mode older : kAllModes) {
      ask({"DEL", "baton_fence:" + kJob});
      ASSERT_TRUE(fence(one.get(), kJob, newer, token + 1));
      EXPECT_EQ(fence(one.get(), kJob, older, token).has_value(), compatible(newer, older))
          << short_name(newer) << " then " << short_name(older);
    }
  }
}

TEST_F(RedisFence, tokens_keep_all_their_bits) {
  const Session one = session();
  constexpr Token kHigh = (Token{1} << 62) - 2;
  ASSERT_TRUE(fence(one.get(), kJob, Mode::X, kHigh));
  EXPECT_FALSE(fence(one.get(), kJob, Mode::X, kHigh - 1));
  EXPECT_TRUE(fence(one.get(), kJob, Mode::X, kHigh + 1));
  EXPECT_EQ(highest_fenced(one.get()).value(), kHigh + 1);
}

TEST_F(RedisFence, a_newer_grant_counts_even_before_its_holder_writes) {
  const auto store = open_redis(server_->url());
  const Session data = session();
  const Token first = take(*store, 1).tokens.at(0);
  ASSERT_TRUE(fence(data.get(), kJob, Mode::X, first));
  end(*store, 1);
  take(*store, 2);
  EXPECT_EQ(fence(data.get(), kJob, Mode::X, first).error().code, Code::fenced);
}

TEST_F(RedisFence, a_script_of_ones_own_can_call_it) {
  const std::string script = std::string(redis_fence_script()) +
                             "local newer = baton_fence(KEYS[1], ARGV[1], ARGV[2])\n"
                             "if newer then return redis.error_reply('FENCED ' .. newer) end\n"
                             "return redis.call('SET', KEYS[2], ARGV[3])";
  const Session one = session();
  const auto run = [&](const std::string& token, const std::string& value) {
    return command(one.get(),
                   {"EVAL", script, "2", "baton_fence:" + kJob, "data", "X", token, value});
  };
  EXPECT_EQ(run("7", "seven"), "OK");
  EXPECT_EQ(run("6", "six"), "FENCED 7");
  EXPECT_EQ(ask({"GET", "data"}), "seven");
}

TEST_F(RedisFence, it_comes_before_multi) {
  const Session one = session();
  command(one.get(), {"MULTI"});
  EXPECT_EQ(fence(one.get(), kJob, Mode::X, 5).error().code, Code::bad_request);
}

TEST_F(RedisFence, a_lost_token_counter_is_lifted_above_what_the_fence_has_seen) {
  const auto store = open_redis(server_->url());
  const auto admin = open_redis_admin(server_->url(), soon()).value();
  const Session data = session();
  constexpr Token kSeen = 4'000'000'000'000'000;
  ASSERT_TRUE(fence(data.get(), kJob, Mode::X, kSeen));
  const Token low = take(*store, 1).tokens.at(0);
  EXPECT_FALSE(fence(data.get(), kJob, Mode::X, low)) << "safe and useless";
  end(*store, 1);
  ASSERT_TRUE(admin->raise_tokens(highest_fenced(data.get()).value(), soon()));
  EXPECT_TRUE(fence(data.get(), kJob, Mode::X, take(*store, 2).tokens.at(0)));
}

}  // namespace
}  // namespace baton::test
