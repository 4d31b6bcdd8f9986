// What the Redis store does beyond the conformance suite: its keys, its scripts, its time limit.

#include <signal.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "baton/locks.h"
#include "integration/redis/redis_support.h"
#include "support/fault_proxy.h"

namespace baton::test {
namespace {

class Silence final : public WakeSink {
 public:
  void wake(std::span<const GrantId> /*grants*/) override {}
};

class RedisStore : public RedisTest {
 protected:
  std::unique_ptr<LockStore> store = open_redis(server_->url());

  static std::int64_t calls_of(const std::string& command) {
    const std::string stats = ask({"INFO", "commandstats"});
    const auto at = stats.find("cmdstat_" + command + ":calls=");
    return at == std::string::npos ? 0 : std::stoll(stats.substr(stats.find('=', at) + 1));
  }
  static std::int64_t number_in(const std::string& section, const std::string& name) {
    const std::string info = ask({"INFO", section});
    const auto at = info.find(name + ":");
    if (at == std::string::npos) throw std::runtime_error("INFO does not say " + name);
    return std::stoll(info.substr(at + name.size() + 1));
  }
  // How often the server has read something from anybody.
  static std::int64_t reads() { return number_in("stats", "total_reads_processed"); }
};

TEST_F(RedisStore, a_released_name_leaves_nothing_behind) {
  ASSERT_EQ(take(*store, 1).outcome, Outcome::granted);
  EXPECT_EQ(ask({"EXISTS", kJobKey}), "1");
  ASSERT_EQ(end(*store, 1).outcome, Outcome::done);
  EXPECT_EQ(ask({"KEYS", "*"}), "{baton:DEFAULT}#last");
}

TEST_F(RedisStore, a_name_that_its_holder_forgot_is_gone_by_itself_when_its_time_is_over) {
  const auto left = [&] { return std::stoll(ask({"PTTL", kJobKey})); };
  take(*store, 1);
  EXPECT_GT(left(), 5'000);
  EXPECT_LE(left(), 10'000 + 10);
  ASSERT_EQ(ask({"PEXPIRE", kJobKey, "5000"}), "1");
  ASSERT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
  EXPECT_GT(left(), 5'000) << "a renewal keeps it as long as the grant";
  EXPECT_LE(left(), 10'000 + 10);
  // As long as somebody waits for it.
  apply(*store, request(Verb::acquire, 2, kJob, Mode::X, 60s));
  EXPECT_GT(left(), 30'000);
}

TEST_F(RedisStore, names_that_were_taken_together_are_gone_by_themselves_too) {
  take(*store, 1);
  // All free, and all but one.
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b", "c"}, {"d", "job", "e"}}) {
    std::vector<Request> batch;
    for (const auto& name : names) {
      batch.push_back(request(Verb::acquire, batch.size() + 2, "DEFAULT:" + name));
      batch.back().owner = batch.front().owner;
      batch.back().channel = batch.front().channel;
    }
    ASSERT_TRUE(store->apply(batch, soon()));
  }
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    const auto left = std::stoll(ask({"PTTL", "{baton:DEFAULT}:" + name}));
    EXPECT_GT(left, 5'000) << name;
    EXPECT_LE(left, 10'000 + 10) << name;
  }
}

TEST_F(RedisStore, a_grant_whose_time_is_over_cannot_be_released) {
  Request brief = request(Verb::acquire, 1, kJob);
  brief.ttl = 20ms;
  ASSERT_EQ(apply(*store, brief).outcome, Outcome::granted);
  ASSERT_TRUE(poll_until([&] { return ask({"EXISTS", kJobKey}) == "0"; }));
  EXPECT_EQ(end(*store, 1).outcome, Outcome::lost);
}

TEST_F(RedisStore, a_name_with_a_note_is_kept_for_ever) {
  Request noted = request(Verb::acquire, 1, kJob);
  noted.change = {.ordinal = 7, .text = "seven"};
  apply(*store, noted);
  EXPECT_EQ(ask({"PTTL", kJobKey}), "-1");
  end(*store, 1);
  EXPECT_EQ(ask({"PTTL", kJobKey}), "-1");
  EXPECT_EQ(take(*store, 2).note, (Note{7, "seven"}));
}

TEST_F(RedisStore, ordinals_keep_all_their_63_bits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Request noted = request(Verb::acquire, 1, kJob);
  noted.change.ordinal = kMost - 1;
  apply(*store, noted);
  end(*store, 1);
  Request next = request(Verb::acquire, 2, kJob);
  next.if_ordinal_below = kMost - 1;
  EXPECT_EQ(apply(*store, next).outcome, Outcome::superseded);
  next.if_ordinal_below = kMost;
  const Reply granted = apply(*store, next);
  EXPECT_EQ(granted.outcome, Outcome::granted);
  EXPECT_EQ(granted.note.ordinal, kMost - 1);
}

TEST_F(RedisStore, tokens_grow_even_if_all_data_is_lost) {
  const Token before = take(*store, 1).tokens.at(0);
  ask({"FLUSHALL"});
  EXPECT_GT(take(*store, 2).tokens.at(0), before);
}

// A replica that became master may not know the last ones.
TEST_F(RedisStore, tokens_grow_even_if_the_last_ones_are_forgotten) {
  take(*store, 9, "DEFAULT:first");
  Token before = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const Token token = take(*store, i).tokens.at(0);
    EXPECT_GT(token, before);
    before = token;
    end(*store, i);
    ask({"SET", "{baton:DEFAULT}#last", "5"});
  }
}

TEST_F(RedisStore, tokens_do_not_need_the_clock_to_grow) {
  take(*store, 1);
  end(*store, 1);
  ask({"SET", "{baton:DEFAULT}#last", "4000000000000000"});
  EXPECT_EQ(take(*store, 2).tokens.at(0), 4'000'000'000'000'001U);
  EXPECT_EQ(take(*store, 3, "DEFAULT:other").tokens.at(0), 4'000'000'000'000'002U);
}

TEST_F(RedisStore, every_new_token_is_above_a_raised_floor_in_every_region) {
  take(*store, 1);
  const auto admin = open_redis_admin(server_->url(), soon()).value();
  constexpr Token kFloor = 4'000'000'000'000'000;
  ASSERT_TRUE(admin->raise_tokens(kFloor, soon()));
  EXPECT_GT(take(*store, 2, "DEFAULT:other").tokens.at(0), kFloor);
  EXPECT_GT(take(*store, 3, "NEW:job").tokens.at(0), kFloor);
  ASSERT_TRUE(admin->raise_tokens(5, soon()));
  EXPECT_GT(take(*store, 4, "NEW:other").tokens.at(0), kFloor);
  EXPECT_EQ(admin->raise_tokens(Token{1} << 60, soon()).error().code, Code::bad_request);
}

// Lua counts exactly up to 2^53; beyond it two grants had the same token.
TEST_F(RedisStore, tokens_above_2_to_the_52nd_are_refused_and_never_repeated) {
  const auto refused = [&](const Request& asked) {
    const auto reply = try_apply(*store, asked);
    ASSERT_FALSE(reply) << reply->tokens.size();
    EXPECT_EQ(reply.error().code, Code::bad_store);
    EXPECT_FALSE(reply.error().in_doubt);
    EXPECT_NE(reply.error().message.find("2^52"), std::string::npos) << reply.error().message;
  };
  const std::string counter = "{baton:DEFAULT}#last";
  const auto shared = [](std::uint64_t grant, const std::string& key) {
    return request(Verb::acquire, grant, key, Mode::S);
  };
  ASSERT_EQ(take(*store, 1).outcome, Outcome::granted);
  ASSERT_EQ(apply(*store, shared(2, "DEFAULT:page")).outcome, Outcome::granted);
  ASSERT_EQ(apply(*store, request(Verb::acquire, 3, kJob, Mode::X, 60s)).outcome, Outcome::queued);
  for (const std::string value :
       {"4503599627370495", "9007199254740992", "18446744073709551615", "1e300", "nan", "x"}) {
    SCOPED_TRACE(value);
    ask({"SET", counter, value});
    refused(request(Verb::acquire, 4, "DEFAULT:free"));
    refused(request(Verb::acquire, 5, kJob, Mode::X, 60s));  // cannot wait either
    refused(request(Verb::convert, 2, "DEFAULT:page", Mode::X));
    // Together, as the fast path sends them.
    const std::vector<Request> batch = {request(Verb::acquire, 6, "DEFAULT:a"),
                                        request(Verb::acquire, 7, "DEFAULT:b")};
    const auto replies = store->apply(batch, soon());
    ASSERT_TRUE(replies) << replies.error().message;
    for (const Reply& reply : *replies) {
      EXPECT_EQ(reply.outcome, Outcome::invalid);
      EXPECT_TRUE(reply.tokens.empty());
    }
    EXPECT_EQ(ask({"GET", counter}), value);
    // What is held is renewed; other regions have tokens.
    EXPECT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
    EXPECT_EQ(take(*store, 8, "OTHER:job").outcome, Outcome::granted);
    EXPECT_EQ(end(*store, 8, "OTHER:job").outcome, Outcome::done);
  }
  // A release goes through; the next in the queue is told why it gets nothing, and stays in it.
  ASSERT_EQ(end(*store, 1).outcome, Outcome::done);
  refused(request(Verb::claim, 3, kJob, Mode::X, 60s));
  ask({"DEL", counter});
  EXPECT_EQ(apply(*store, request(Verb::claim, 3, kJob, Mode::X, 60s)).outcome, Outcome::granted);
}

TEST_F(RedisStore, a_server_whose_clock_is_beyond_2_to_the_52nd_grants_nothing) {
  for (const std::int64_t micros : {std::int64_t{1} << 52, std::int64_t{1} << 53}) {
    const auto late = store::open_redis_store(
        {.url = server_->url(), .now = [=] { return core::StoreTime(micros); }}, soon());
    const auto reply = try_apply(**late, request(Verb::acquire, 1, kJob));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::bad_store);
  }
}

TEST_F(RedisStore, the_counter_cannot_be_raised_to_where_tokens_end) {
  take(*store, 1);
  const auto admin = open_redis_admin(server_->url(), soon()).value();
  const std::string before = ask({"GET", "{baton:DEFAULT}#last"});
  for (const Token floor : {(Token{1} << 52) - 1, Token{1} << 52, ~Token{0}}) {
    const auto raised = admin->raise_tokens(floor, soon());
    ASSERT_FALSE(raised) << floor;
    EXPECT_EQ(raised.error().code, Code::bad_request);
  }
  EXPECT_EQ(ask({"GET", "{baton:DEFAULT}#last"}), before);
}

TEST_F(RedisStore, a_name_that_ends_like_a_counter_is_none) {
  const std::string name = "DEFAULT:page:x}#last";
  const std::string key = "{baton:DEFAULT}:page:x}#last";
  constexpr Token kFloor = 4'000'000'000'000'000;
  const auto admin = open_redis_admin(server_->url(), soon()).value();
  take(*store, 1, name);
  const std::string held = ask({"GET", key});
  const auto raised = admin->raise_tokens(kFloor, soon());
  ASSERT_TRUE(raised) << raised.error().message;
  EXPECT_EQ(ask({"GET", key}), held);
  EXPECT_GT(take(*store, 2).tokens.at(0), kFloor);
  // What a name says is not a token either.
  ask({"SET", key, "4100000000000000"});
  const auto status = admin->status(soon()).value();
  EXPECT_NE(
      std::find(status.details.begin(), status.details.end(),
                std::pair<std::string, std::string>("last token", std::to_string(kFloor + 1))),
      status.details.end());
}

TEST_F(RedisStore, a_note_does_not_keep_renewals_waiting) {
  const auto connections = [&] {
    const std::string clients = ask({"CLIENT", "LIST"});
    return std::count(clients.begin(), clients.end(), '\n');
  };
  take(*store, 1);
  const auto before = connections();
  Request noted = request(Verb::renew, 1, kJob);
  noted.change.text = "note";
  ASSERT_EQ(apply(*store, noted).outcome, Outcome::granted);
  EXPECT_EQ(connections(), before) << "it went the way of all requests";
  ASSERT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
  EXPECT_EQ(connections(), before + 1) << "renewals have a connection of their own";
}

TEST_F(RedisStore, a_channel_that_nobody_watches_any_more_is_left) {
  const auto subscribers = [&](const std::string& channel) {
    const std::string answer = ask({"PUBSUB", "NUMSUB", "baton:wake:" + channel});
    return answer.substr(answer.rfind('\n') + 1);
  };
  Silence sink;
  auto stays = store->watch("stays", sink);
  auto goes = store->watch("goes", sink);
  auto half = store->watch("half", sink);
  const auto other_half = store->watch("half", sink);
  ASSERT_TRUE(poll_until([&] { return subscribers("goes") == "1" && subscribers("half") == "1"; }));
  goes.reset();
  half.reset();
  const auto next = store->watch("next", sink);
  EXPECT_TRUE(poll_until([&] { return subscribers("next") == "1" && subscribers("goes") == "0"; }));
  EXPECT_EQ(subscribers("stays"), "1");
  EXPECT_EQ(subscribers("half"), "1");
  goes = store->watch("goes", sink);
  EXPECT_TRUE(poll_until([&] { return subscribers("goes") == "1"; }));
}

TEST_F(RedisStore, scripts_that_the_server_forgot_are_loaded_again) {
  take(*store, 1);
  ask({"SCRIPT", "FLUSH"});
  EXPECT_EQ(end(*store, 1).outcome, Outcome::done);
  ask({"SCRIPT", "FLUSH"});
  EXPECT_EQ(take(*store, 2).outcome, Outcome::granted);
  ask({"SCRIPT", "FLUSH"});
  EXPECT_EQ(take(*store, 3).outcome, Outcome::busy);
}

TEST_F(RedisStore, a_batch_of_hundreds_survives_a_forgotten_script) {
  ask({"SCRIPT", "FLUSH"});
  std::vector<Request> batch;
  for (std::uint64_t i = 0; i < 700; ++i) {
    batch.push_back(request(Verb::acquire, i + 1, "DEFAULT:many:" + std::to_string(i % 350)));
  }
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  for (std::size_t i = 0; i < 700; ++i) {
    EXPECT_EQ(replies->at(i).outcome, i < 350 ? Outcome::granted : Outcome::busy) << i;
  }
}

TEST_F(RedisStore, a_batch_is_one_round_trip_whatever_its_scripts) {
  for (std::uint64_t i = 1; i <= 10; ++i) take(*store, i, "DEFAULT:held:" + std::to_string(i));
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const std::string number = std::to_string(i);
    batch.push_back(request(Verb::acquire, 100 + i, "DEFAULT:free:" + number));
    batch.push_back(request(Verb::release, i, "DEFAULT:held:" + number));
    batch.push_back(request(Verb::get, 200 + i, "DEFAULT:other:" + number));
  }
  const auto scripts = calls_of("evalsha");
  const auto before = reads();
  const auto between = reads();  // what it costs to ask
  const auto replies = store->apply(batch, soon());
  const auto after = reads();
  ASSERT_TRUE(replies) << replies.error().message;
  for (std::size_t i = 0; i < batch.size(); i += 3) {
    EXPECT_EQ(replies->at(i).outcome, Outcome::granted) << i;
    EXPECT_EQ(replies->at(i + 1).outcome, Outcome::done) << i;
  }
  EXPECT_EQ(calls_of("evalsha") - scripts, 3) << "free ones, held ones, and the rest";
  EXPECT_EQ((after - between) - (between - before), 1);
}

TEST_F(RedisStore, only_who_holds_it_next_is_told_of_a_release) {
  const auto told_by = [&](const Request& request, Outcome expected) {
    const auto before = calls_of("publish");
    EXPECT_EQ(apply(*store, request).outcome, expected);
    return calls_of("publish") - before;
  };
  const auto wait = [&](std::uint64_t grant, Mode mode) {
    EXPECT_EQ(told_by(request(Verb::acquire, grant, kJob, mode, 60s), Outcome::queued), 0);
  };
  EXPECT_EQ(told_by(request(Verb::acquire, 1, kJob), Outcome::granted), 0);
  EXPECT_EQ(told_by(request(Verb::renew, 1, kJob), Outcome::granted), 0);
  EXPECT_EQ(told_by(request(Verb::release, 1, kJob), Outcome::done), 0) << "nobody waits";
  take(*store, 2);
  wait(3, Mode::X);
  wait(4, Mode::X);
  wait(5, Mode::S);
  wait(6, Mode::S);
  wait(7, Mode::X);
  EXPECT_EQ(told_by(request(Verb::release, 2, kJob), Outcome::done), 1) << "the first of five";
  EXPECT_EQ(told_by(request(Verb::claim, 3, kJob), Outcome::granted), 0);
  EXPECT_EQ(told_by(request(Verb::release, 3, kJob), Outcome::done), 1);
  EXPECT_EQ(told_by(request(Verb::claim, 4, kJob), Outcome::granted), 0);
  EXPECT_EQ(told_by(request(Verb::release, 4, kJob), Outcome::done), 2) << "both who share it";
}

TEST_F(RedisStore, names_of_several_regions_are_taken_together) {
  Request both = request(Verb::acquire, 1, "EU:job");
  both.targets.push_back({"US:job", Mode::X});
  const Reply granted = apply(*store, both);
  ASSERT_EQ(granted.outcome, Outcome::granted);
  EXPECT_EQ(granted.tokens.size(), 2U);
  EXPECT_EQ(take(*store, 2, "US:job").outcome, Outcome::busy);
  Request waiting = both;
  waiting.grant = {0xBA70, 3};
  waiting.queue_ttl = 60s;
  EXPECT_EQ(apply(*store, waiting).outcome, Outcome::queued);
  both.verb = Verb::release;
  EXPECT_EQ(apply(*store, both).outcome, Outcome::done);
  EXPECT_EQ(take(*store, 4, "EU:job").outcome, Outcome::busy) << "past a waiting set";
  waiting.verb = Verb::claim;
  EXPECT_EQ(apply(*store, waiting).outcome, Outcome::granted);
}

TEST_F(RedisStore, prefixes_and_databases_keep_fleets_apart) {
  const auto other_prefix = open_redis(server_->url("prefix=shop"));
  const auto other_database =
      open_redis("redis://127.0.0.1:" + std::to_string(server_->port()) + "/1");
  EXPECT_EQ(take(*store, 1).outcome, Outcome::granted);
  EXPECT_EQ(take(*other_prefix, 2).outcome, Outcome::granted);
  EXPECT_EQ(take(*other_database, 3).outcome, Outcome::granted);
  EXPECT_EQ(take(*open_redis(server_->socket_url()), 4).outcome, Outcome::busy);
  EXPECT_EQ(take(*open_redis(server_->socket_url("db=1")), 4).outcome, Outcome::busy);
  EXPECT_EQ(store->find({}, soon()).value().items.size(), 1U);
}

// The server reads the request when its client has long given up.
TEST_F(RedisStore, a_request_that_arrives_after_its_client_gave_up_grants_nothing) {
  const auto hasty = open_redis(server_->url("apply_timeout=300ms"));
  for (const bool plain : {true, false}) {
    take(*hasty, 1, "DEFAULT:warm");  // connects
    Request late = request(Verb::acquire, 2, kJob);
    if (!plain) late.change.text = "note";
    const auto ran = calls_of("evalsha");
    ASSERT_TRUE(stop_still(server_->pid()));
    const auto reply = try_apply(*hasty, late);
    kill(server_->pid(), SIGCONT);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::unavailable);
    EXPECT_TRUE(reply.error().in_doubt);
    EXPECT_TRUE(reply.error().retryable);
    EXPECT_TRUE(poll_until([&] { return calls_of("evalsha") > ran; }));
    EXPECT_EQ(ask({"EXISTS", kJobKey}), "0");
  }
}

TEST_F(RedisStore, a_call_returns_by_its_deadline) {
  ASSERT_TRUE(stop_still(server_->pid()));
  const auto before = BootClock::now();
  const auto reply = try_apply(*store, request(Verb::acquire, 1, kJob), before + 200ms);
  const auto took = BootClock::now() - before;
  kill(server_->pid(), SIGCONT);
  ASSERT_FALSE(reply);
  EXPECT_TRUE(reply.error().in_doubt);
  EXPECT_LT(took, 4s) << "the time of a whole apply_timeout";
}

TEST_F(RedisStore, a_server_that_comes_back_is_used_again) {
  take(*store, 1);
  server_->crash();
  const auto refused = [&](std::uint64_t grant) {
    return try_apply(*store, request(Verb::acquire, grant, kJob), BootClock::now() + 300ms);
  };
  // This one may go out on the old connection: it was good a moment ago.
  ASSERT_FALSE(refused(2));
  const auto next = refused(3);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Code::unavailable);
  EXPECT_FALSE(next.error().in_doubt) << "there was nobody to send it to";
  server_->start();
  EXPECT_EQ(take(*store, 4).outcome, Outcome::granted);
}

TEST_F(RedisStore, something_else_under_the_key_is_neither_a_free_lock_nor_overwritten) {
  take(*store, 9, "DEFAULT:warm");
  ask({"HSET", kJobKey, "field", "value"});
  const auto alone = try_apply(*store, request(Verb::acquire, 1, kJob));
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->outcome, Outcome::denied);
  EXPECT_NE(alone->message.find("something else"), std::string::npos) << alone->message;
  const std::vector<Request> batch = {request(Verb::acquire, 1, kJob),
                                      request(Verb::acquire, 2, "DEFAULT:other"),
                                      request(Verb::acquire, 3, "DEFAULT:third")};
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::denied);
  EXPECT_EQ(replies->at(1).outcome, Outcome::granted);
  EXPECT_EQ(replies->at(2).outcome, Outcome::granted);
  EXPECT_EQ(ask({"HGET", kJobKey, "field"}), "value");
  EXPECT_EQ(store->find({}, soon()).value().items.size(), 4U) << "the damaged one is shown too";
}

TEST_F(RedisStore, a_damaged_value_is_not_a_free_lock) {
  for (const std::string value : {"", "nonsense", "0", "0\x90", "1\x95"}) {
    ask({"SET", kJobKey, value});
    for (const Verb verb : {Verb::acquire, Verb::release, Verb::get, Verb::renew}) {
      const auto reply = try_apply(*store, request(verb, 1, kJob));
      ASSERT_TRUE(reply) << to_string(verb) << ": " << reply.error().message;
      EXPECT_EQ(reply->outcome, Outcome::denied) << to_string(verb);
    }
    EXPECT_EQ(ask({"GET", kJobKey}), value);
  }
}

// The digit of a value, and then what some other program may have put there.
TEST_F(RedisStore, a_damaged_value_harms_no_other_name_of_its_batch) {
  const std::string healthy = "DEFAULT:healthy";
  take(*store, 9, healthy);
  for (const std::string value : {"", "nonsense", "0", "10", "12345", "0\x90", "1\x95",
                                  "0\x95\x01\x02\x03\x04\x05", "0\x95\x90\x90\x90\x07\x08"}) {
    ask({"SET", kJobKey, value});
    for (const Verb verb : {Verb::acquire, Verb::release, Verb::get, Verb::renew, Verb::cancel}) {
      const std::vector<Request> batch = {request(verb, 1, kJob), request(Verb::renew, 9, healthy)};
      const auto replies = store->apply(batch, soon());
      ASSERT_TRUE(replies) << value << " " << to_string(verb) << ": " << replies.error().message;
      EXPECT_EQ(replies->at(0).outcome, Outcome::denied) << value << " " << to_string(verb);
      EXPECT_EQ(replies->at(1).outcome, Outcome::granted) << value << " " << to_string(verb);
    }
    EXPECT_EQ(ask({"GET", kJobKey}), value);
  }
}

TEST_F(RedisStore, find_pages_through_more_names_than_it_keeps_in_mind) {
  constexpr std::size_t kNames = 12'000;
  std::vector<Request> batch;
  for (std::uint64_t i = 0; i < kNames; ++i) {
    batch.push_back(request(Verb::acquire, i + 1, "DEFAULT:many:" + std::to_string(i)));
  }
  ASSERT_TRUE(store->apply(batch, soon()));
  Query query{.subject = "many"};
  query.limit = 5'000;
  std::set<std::string> keys;
  int pages = 0;
  do {
    const auto page = store->find(query, soon());
    ASSERT_TRUE(page) << page.error().message;
    for (const auto& item : page->items) keys.insert(item.key);
    query.after = page->next;
    ++pages;
  } while (!query.after.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(keys.size(), kNames);
  EXPECT_EQ(store->find({.owner = "node-11999"}, soon()).value().items.size(), 1U);
  EXPECT_EQ(calls_of("keys"), 0);
}

TEST_F(RedisStore, find_takes_no_name_for_a_pattern) {
  for (const std::string part : {"a*", "a?", "a[b]", "a\\", "ab"}) {
    take(*store, 1, key_of({.subject = "odd", .resources = {part}}));
  }
  const auto found =
      store->find({.region = "DEFAULT", .subject = "odd", .resources = {"a[b]"}}, soon());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->items.size(), 1U);
}

TEST_F(RedisStore, a_release_that_was_carried_out_is_in_doubt_and_not_lost) {
  FaultProxy line(server_->port());
  const auto behind = open_redis("redis://127.0.0.1:" + std::to_string(line.port()));
  take(*behind, 1);
  Request last = request(Verb::release, 1, kJob);
  last.change.text = "the last words of a holder";
  line.swallow_answer_to(*last.change.text);
  const auto reply = try_apply(*behind, last);
  ASSERT_EQ(line.swallowed(), 1);
  ASSERT_FALSE(reply) << reply->message;
  EXPECT_TRUE(reply.error().in_doubt);
  EXPECT_EQ(apply(*store, request(Verb::get, 0, kJob)).info->note.text, last.change.text);
}

// Renewals need no new memory, and neither does what ends a grant.
TEST_F(RedisStore, a_full_server_still_renews_and_releases) {
  take(*store, 1);
  take(*store, 2, "DEFAULT:noted");
  Request note = request(Verb::renew, 2, "DEFAULT:noted");
  note.change = {.ordinal = 1, .text = "half way"};
  EXPECT_EQ(apply(*store, note).outcome, Outcome::granted);
  const std::vector<Target> both = {{"DEFAULT:set:a", Mode::X}, {"DEFAULT:set:b", Mode::X}};
  Request set = request(Verb::acquire, 3, "");
  set.targets = both;
  EXPECT_EQ(apply(*store, set).outcome, Outcome::granted);
  EXPECT_EQ(apply(*store, request(Verb::acquire, 4, kJob, Mode::X, 30s)).outcome, Outcome::queued);
  ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto refused = try_apply(*store, request(Verb::acquire, 5, "DEFAULT:new"));
  EXPECT_TRUE(!refused && refused.error().retryable) << "the server is not full";

  ask({"PEXPIRE", "{baton:DEFAULT}:set:a", "5000"});
  set.verb = Verb::renew;
  EXPECT_EQ(apply(*store, set).outcome, Outcome::granted);
  EXPECT_GT(std::stoi(ask({"PTTL", "{baton:DEFAULT}:set:a"})), 5000) << "it was not renewed";
  EXPECT_LT(std::stoi(ask({"PTTL", "{baton:DEFAULT}:set:a"})), 11'000);
  EXPECT_EQ(apply(*store, request(Verb::renew, 2, "DEFAULT:noted")).outcome, Outcome::granted);
  EXPECT_EQ(ask({"PTTL", "{baton:DEFAULT}:noted"}), "-1") << "a note is kept for ever";
  EXPECT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
  EXPECT_EQ(end(*store, 1).outcome, Outcome::done);
  EXPECT_EQ(apply(*store, request(Verb::claim, 4, kJob)).outcome, Outcome::granted)
      << "who waits gets what is free";
  EXPECT_EQ(end(*store, 4).outcome, Outcome::done);
  Request last = request(Verb::release, 2, "DEFAULT:noted");
  last.change = {.ordinal = 2, .text = "done"};
  EXPECT_EQ(apply(*store, last).outcome, Outcome::done);
  set.verb = Verb::release;
  EXPECT_EQ(apply(*store, set).outcome, Outcome::done);
  ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(apply(*store, request(Verb::get, 0, "DEFAULT:noted")).info->note.text, "done");
}

// The connection for renewals has gone, and the server takes no other.
TEST_F(RedisStore, a_lease_outlives_the_connection_for_renewals) {
  take(*store, 1);
  const auto clients = [] {
    std::vector<std::string> ids;
    std::istringstream lines(ask({"CLIENT", "LIST"}));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("name=baton") != std::string::npos) {
        ids.push_back(line.substr(3, line.find(' ') - 3));
      }
    }
    return ids;
  };
  const auto before = clients();
  ASSERT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
  for (const std::string& id : clients()) {
    const bool renews = std::find(before.begin(), before.end(), id) == before.end();
    if (renews) ask({"CLIENT", "KILL", "ID", id});
  }
  ASSERT_EQ(clients(), before);
  // redis-cli could not undo it: it is a client too.
  ask({"CONFIG", "SET", "maxclients", "1"});
  for (int i = 0; i < 5; ++i) {
    const auto renewed = try_apply(*store, request(Verb::renew, 1, kJob), soon());
    ASSERT_TRUE(renewed) << renewed.error().message;
    EXPECT_EQ(renewed->outcome, Outcome::granted);
  }
  server_->crash();
  server_->start();
}

TEST_F(RedisStore, a_try_on_a_busy_name_writes_nothing) {
  take(*store, 9, "DEFAULT:first");
  take(*store, 1);
  const std::string before = ask({"DUMP", kJobKey}) + ask({"GET", "{baton:DEFAULT}#last"});
  const auto written = number_in("persistence", "rdb_changes_since_last_save");
  // The first one tries the fast path; the second knows that the name is contended.
  EXPECT_EQ(take(*store, 2).outcome, Outcome::busy);
  EXPECT_EQ(take(*store, 3).outcome, Outcome::busy);
  EXPECT_EQ(number_in("persistence", "rdb_changes_since_last_save"), written);
  EXPECT_EQ(ask({"DUMP", kJobKey}) + ask({"GET", "{baton:DEFAULT}#last"}), before);
}

TEST_F(RedisStore, a_policy_change_reaches_the_check_of_every_request) {
  Request schema = request(Verb::acquire, 1, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 3, .text = "{}"};
  ASSERT_EQ(apply(*store, schema).outcome, Outcome::granted);
  EXPECT_EQ(ask({"GET", "{baton:BATON}#version"}), "3");
  EXPECT_EQ(take(*store, 2).outcome, Outcome::denied);
  Request right = request(Verb::acquire, 3, kJob);
  right.schema_version = 3;
  EXPECT_EQ(apply(*store, right).outcome, Outcome::granted);
}

}  // namespace
}  // namespace baton::test
