#include <gtest/gtest.h>

#include <functional>

#include "baton/name.h"
#include "core/apply.h"

namespace baton::core {
namespace {

Request sound(Verb verb = Verb::acquire) {
  Request request;
  request.verb = verb;
  request.grant = {1, 2};
  request.targets = {{"DEFAULT:a", Mode::X}};
  request.ttl = Millis(1000);
  return request;
}

struct Rule {
  const char* says;  // a part of the message
  std::function<void(Request&)> break_it;
};

const std::vector<Rule>& rules() {
  using std::string;
  static const string bad_utf8 = "\xC3(";
  static const string long_text(kMaxTextBytes + 1, 'x');
  static const std::vector<Rule> all = {
      {"at least one lock", [](Request& r) { r.targets.clear(); }},
      {"at most 64 locks",
       [](Request& r) {
         for (int i = 0; i < 64; ++i)
           r.targets.push_back({"DEFAULT:n" + std::to_string(i), Mode::X});
       }},
      {"a key is", [](Request& r) { r.targets[0].key.clear(); }},
      {"a key is", [](Request& r) { r.targets[0].key = string(3 * kMaxNameBytes + 1, 'k'); }},
      {"a key is", [](Request& r) { r.targets[0].key = "DEFAULT:" + bad_utf8; }},
      {"a key is", [](Request& r) { r.targets[0].key = string("DEFAULT:a\0b", 11); }},
      {"unknown mode", [](Request& r) { r.targets[0].mode = static_cast<Mode>(6); }},
      {"each lock once",
       [](Request& r) {
         r.targets.push_back({"DEFAULT:a", Mode::S});
       }},
      {"names its grant", [](Request& r) { r.grant = {}; }},
      {"text of at most", [](Request& r) { r.owner = long_text; }},
      {"text of at most", [](Request& r) { r.channel = long_text; }},
      {"text of at most", [](Request& r) { r.predicate = bad_utf8; }},
      {"text of at most", [](Request& r) { r.reason = long_text; }},
      {"text of at most", [](Request& r) { r.to = bad_utf8; }},
      {"metadata is not text", [](Request& r) { r.metadata["a"] = bad_utf8; }},
      {"metadata is not text", [](Request& r) { r.metadata[bad_utf8] = "a"; }},
      {"metadata has at most",
       [](Request& r) { r.metadata["key"] = string(kMaxMetadataBytes - 2, 'v'); }},
      {"a note has at most", [](Request& r) { r.change.text = string(kMaxNoteBytes + 1, 'n'); }},
      {"a note is UTF-8", [](Request& r) { r.change.text = bad_utf8; }},
      {"an ordinal is not negative", [](Request& r) { r.change.ordinal = -1; }},
      {"an ordinal is not negative", [](Request& r) { r.if_ordinal_below = -1; }},
      {"a TTL is above zero", [](Request& r) { r.ttl = Millis(0); }},
      {"a TTL is above zero", [](Request& r) { r.ttl = Millis(-1); }},
      {"a TTL is above zero", [](Request& r) { r.ttl = kMaxTtl + Millis(1); }},
      {"a time span", [](Request& r) { r.queue_ttl = Millis(-1); }},
      {"a time span", [](Request& r) { r.queue_ttl = kMaxWait + Millis(1); }},
      {"a time span", [](Request& r) { r.claim_within = Millis(-1); }},
      {"a time span", [](Request& r) { r.tombstone_ttl = kMaxWait + Millis(1); }},
      {"a time span", [](Request& r) { r.at_least_for = kMaxTtl + Millis(1); }},
      {"how long a hand-off may take", [](Request& r) { r.queue_ttl = Millis(1); }},
      {"get and break take one lock",
       [](Request& r) {
         r.verb = Verb::get;
         r.targets.push_back({"DEFAULT:b", Mode::X});
       }},
      {"get and break take one lock",
       [](Request& r) {
         r.verb = Verb::break_;
         r.targets.push_back({"DEFAULT:b", Mode::X});
       }},
      {"a transfer takes one lock",
       [](Request& r) {
         r.verb = Verb::release;
         r.to = "node-2";
         r.targets.push_back({"DEFAULT:b", Mode::X});
       }},
  };
  return all;
}

TEST(Rules, each_broken_one_is_named_and_nothing_is_touched) {
  for (const Rule& rule : rules()) {
    Request request = sound();
    ASSERT_EQ(broken_rule(request), std::nullopt);
    rule.break_it(request);
    const auto broken = broken_rule(request);
    ASSERT_TRUE(broken) << rule.says;
    EXPECT_NE(broken->find(rule.says), std::string::npos) << *broken;
    LockTable table;
    Effects effects;
    const Reply reply = apply(table, request, StoreTime(1), effects);
    EXPECT_EQ(reply.outcome, Outcome::invalid);
    EXPECT_EQ(reply.message, *broken);
    EXPECT_TRUE(table.names.empty());
    EXPECT_EQ(table.last, 0U);
  }
}

TEST(Rules, everything_at_its_limit_is_sound) {
  Request request = sound();
  request.ttl = kMaxTtl;
  request.queue_ttl = kMaxWait;
  request.claim_within = kMaxWait;
  request.at_least_for = kMaxTtl;
  request.tombstone_ttl = kMaxWait;
  request.owner = request.channel = request.predicate = std::string(kMaxTextBytes, 'x');
  request.metadata["key"] = std::string(kMaxMetadataBytes - 3, 'v');
  request.change.text = std::string(kMaxNoteBytes, 'n');
  request.change.ordinal = 0;
  request.if_ordinal_below = 0;
  request.targets[0].key = std::string(3 * kMaxNameBytes, 'k');
  for (std::size_t i = 1; i < kMaxSet; ++i) {
    request.targets.push_back({"DEFAULT:n" + std::to_string(i), Mode::X});
  }
  EXPECT_EQ(broken_rule(request), std::nullopt);
}

TEST(Rules, a_look_and_a_break_need_no_grant_and_no_ttl) {
  for (const Verb verb : {Verb::get, Verb::break_}) {
    Request request = sound(verb);
    request.grant = {};
    request.ttl = Millis(0);
    EXPECT_EQ(broken_rule(request), std::nullopt);
  }
  for (const Verb verb : {Verb::claim, Verb::renew, Verb::convert, Verb::release, Verb::cancel}) {
    Request request = sound(verb);
    request.ttl = Millis(0);
    EXPECT_EQ(broken_rule(request), std::nullopt);
    request.grant = {};
    EXPECT_TRUE(broken_rule(request)) << to_string(verb);
  }
}

TEST(Rules, the_schema_may_be_larger_than_a_note_of_users) {
  Request request = sound();
  request.change.text = std::string(kMaxReservedNoteBytes, 's');
  EXPECT_TRUE(broken_rule(request));
  request.targets[0].key = std::string(kSchemaKey);
  EXPECT_EQ(broken_rule(request), std::nullopt);
  *request.change.text += 's';
  EXPECT_TRUE(broken_rule(request));
}

TEST(Rules, any_name_that_is_valid_has_a_key_that_is_too) {
  LockName name;
  name.subject =
      std::string(kMaxNameBytes - 2 - kDefaultRegion.size() - kDefaultPredicate.size(), ':');
  ASSERT_TRUE(validate(name));
  Request request = sound();
  request.targets[0].key = key_of(name, true);
  EXPECT_EQ(broken_rule(request), std::nullopt) << request.targets[0].key.size();
}

}  // namespace
}  // namespace baton::core
