// What stands in a Lease, and how time is told from it.

#include "store/kubernetes/document.h"

#include <gtest/gtest.h>

#include "core/sha256.h"
#include "store/common/document_loop.h"
#include "store/kubernetes/lease_object.h"
#include "store/kubernetes/object_name.h"

namespace baton::store::kubernetes {
namespace {

using namespace std::chrono_literals;
using core::StoreTime;

TEST(KubernetesNames, are_dns_labels_made_of_a_known_hash) {
  EXPECT_EQ(core::sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(core::sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(core::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(object_name("abc"), "baton-ba7816bf8f01cfea414140de5dae2223b00361a3");
  EXPECT_LE(object_name(std::string(765, 'x')).size(), 63U);
}

TEST(KubernetesTime, dates_are_read_and_written) {
  const auto date = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  ASSERT_TRUE(date);
  EXPECT_EQ(*date, 784111777s);
  EXPECT_EQ(print_micro_time(*date + 5us), "1994-11-06T08:49:37.000005Z");
  for (const char* bad :
       {"", "now", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Xyz 1994 08:49:37 GMT",
        "Sun, 0x Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"}) {
    EXPECT_FALSE(parse_http_date(bad)) << bad;
  }
}

TEST(KubernetesTime, the_servers_clock_is_never_put_ahead_and_follows_when_set_back) {
  ServerClock clock;
  clock.heard(1000s, 10s + 900ms);  // cut to the second: it may have been almost 1001 s
  EXPECT_EQ(clock.at(11s + 900ms), 1001s);
  clock.heard(1002s, 12s + 100ms);
  EXPECT_EQ(clock.at(12s + 100ms), 1002s);
  clock.heard(1004s, 14s + 900ms);  // late: no news
  EXPECT_EQ(clock.at(15s + 100ms), 1005s);
  clock.heard(900s, 20s);
  EXPECT_EQ(clock.at(20s), 900s);
}

class KubernetesDocument : public ::testing::Test {
 protected:
  static constexpr ClockReading kStart{StoreTime(100s), ServerTime(5000s)};

  static core::NameState held() {
    core::NameState state;
    core::Holder holder;
    holder.grant = {1, 2};
    holder.ttl = 10s;
    holder.token = kPending + 1;
    holder.since = kStart.here;
    holder.expires = kStart.here + 10s;
    state.holders.push_back(holder);
    core::Waiter waiter;
    waiter.grant = {3, 4};
    waiter.ttl = 10s;
    waiter.turn = kPending + 2;
    waiter.stale = kStart.here + 5s;
    waiter.claim_within = 2s;
    state.waiters.push_back(waiter);
    state.tombstones.push_back({{5, 6}, kStart.here + 7s});
    state.note = {4, "a \"note\""};
    return state;
  }

  static core::NameState read(const std::string& text, const ClockReading& now,
                              const Timings& known, Timings& timings) {
    return parse_document(text, 77, known, now, timings).value();
  }
};

TEST_F(KubernetesDocument, whoever_wrote_it_reads_exactly_the_same) {
  Timings written;
  const std::string text = print_document(held(), {}, 0, kStart, written);
  Timings timings;
  auto expected = held();
  resolve(expected, 77);
  const auto state = read(text, {kStart.here + 3s, kStart.server + 3s}, written, timings);
  EXPECT_EQ(state.holders, expected.holders);
  EXPECT_EQ(state.waiters, expected.waiters);
  EXPECT_EQ(state.tombstones, expected.tombstones);
  EXPECT_EQ(state.note, expected.note);
}

TEST_F(KubernetesDocument, an_observer_counts_from_when_it_first_saw_a_record) {
  Timings written;
  const std::string text = print_document(held(), {}, 0, kStart, written);
  // Its own clock has nothing to do with the writer's.
  const ClockReading first{StoreTime(7777s), kStart.server + 2s};
  Timings seen;
  const auto state = read(text, first, {}, seen);
  EXPECT_EQ(state.holders[0].expires, first.here + 10s);
  EXPECT_EQ(state.waiters[0].stale, first.here + 5s);
  EXPECT_EQ(state.holders[0].since, first.here - 2s);
  Timings again;
  EXPECT_EQ(read(text, {first.here + 6s, first.server + 6s}, seen, again).holders[0].expires,
            first.here + 10s);

  auto renewed = held();
  renewed.holders[0].expires = kStart.here + 13s;
  const ClockReading later{kStart.here + 3s, kStart.server + 3s};
  const std::string next = print_document(renewed, written, 77, later, written);
  const auto after = read(next, {first.here + 4s, first.server + 4s}, again, seen);
  EXPECT_EQ(after.holders[0].expires, first.here + 14s) << "renewed: counts anew";
  EXPECT_EQ(after.waiters[0].stale, first.here + 5s) << "not touched: goes on";
}

TEST_F(KubernetesDocument, a_client_too_late_to_observe_believes_the_servers_date_with_grace) {
  Timings written;
  const std::string text = print_document(held(), {}, 0, kStart, written);
  const auto left = [&](ServerTime passed) {
    Timings timings;
    const ClockReading now{StoreTime(50s), kStart.server + passed};
    return read(text, now, {}, timings).holders[0].expires - now.here;
  };
  EXPECT_EQ(left(0s), 10s);
  EXPECT_EQ(left(10s), 10s) << "within the grace only observing counts";
  EXPECT_EQ(left(15s), 5s);
  EXPECT_EQ(left(20s), 0s);
  EXPECT_EQ(left(1h), 0s);
  EXPECT_EQ(left(-1h), 10s) << "a server clock that was set back frees nothing and keeps nothing";
}

TEST_F(KubernetesDocument, where_either_date_is_unknown_only_observing_counts) {
  Timings timings;
  const std::string dated = print_document(held(), {}, 0, kStart, timings);
  EXPECT_EQ(read(dated, {StoreTime(50s), ServerTime(0)}, {}, timings).holders[0].expires, 60s);
  const std::string undated = print_document(held(), {}, 0, {kStart.here, ServerTime(0)}, timings);
  EXPECT_EQ(read(undated, {StoreTime(50s), kStart.server}, {}, timings).holders[0].expires, 60s);
}

TEST_F(KubernetesDocument, anything_else_is_damage) {
  Timings timings;
  const std::string good = print_document(held(), {}, 0, kStart, timings);
  ASSERT_TRUE(parse_document(good, 77, {}, kStart, timings));
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    const auto state = parse_document(text, 77, {}, kStart, timings);

    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, Code::bad_store);
  };
  broken("{", "[");
  broken("\"for\":10000000", "\"for\":-1");
  broken("\"for\":10000000", "\"for\":9223372036854775807");
  broken("\"for\":10000000", "\"fore\":10000000");
  broken("\"time\":", "\"tyme\":");
  broken("\"ttl\":10000", "\"ttl\":\"long\"");
  broken("\"grant\":\"", "\"grant\":\"x");
  for (const char* text : {"", "null", "[]", "7", R"({"holders":{}})", R"({"holders":[7]})"}) {
    EXPECT_FALSE(parse_document(text, 77, {}, kStart, timings)) << text;
  }
}

TEST(KubernetesLease, a_version_that_no_token_can_be_made_of_is_refused) {
  const auto lease = [](const std::string& version) {
    return parse_lease(R"({"metadata":{"name":"n","uid":"u","resourceVersion":")" + version +
                       R"("}})");
  };
  EXPECT_EQ(lease("123")->version, 123U);
  for (const char* bad : {"", "0", "abc", "12x", "-1", "99999999999999999999"}) {
    EXPECT_FALSE(lease(bad)) << bad;
  }
}

TEST(KubernetesLease, wakes_are_told_once) {
  const std::vector<core::Wake> wakes = {
      {"aa", {1, 1}}, {"bb", {1, 2}}, {"aa", {1, 1}}, {"x y", {1, 3}}};
  const std::string text = print_wakes(wakes);
  EXPECT_EQ(new_wakes(text, "").size(), 2U);
  const auto news = new_wakes(text, print_wakes({wakes[0]}));
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0], wakes[1]);
  EXPECT_TRUE(new_wakes("nonsense = x=y", "").empty());
}

}  // namespace
}  // namespace baton::store::kubernetes
