// What a store keeps of a name can be damaged, by a program that has no business there or by a
// newer version of this one. Nobody gets such a name, everybody is told which one it is, and no
// other name suffers.

#include <gtest/gtest.h>

#include <algorithm>

#include "harness.h"

namespace baton::test {
namespace {

const std::string kSound = "DEFAULT:sound";
const std::string kBad = "DEFAULT:bad";
const std::string kFree = "DEFAULT:free";

class Damage : public testing::Test {
 protected:
  // The name is held, and then what is kept of it makes no sense.
  bool damage(const std::string& text) {
    store_ = factory().fresh(time_);
    EXPECT_EQ(ask(acquire(1, kSound)).outcome, Outcome::granted);
    const Reply held = ask(acquire(2, kBad));
    EXPECT_EQ(held.outcome, Outcome::granted);
    token_ = held.tokens.at(0);
    return factory().damage(kBad, text);
  }
  Reply ask(const Request& request) { return store_->apply({&request, 1}, soon()).value().at(0); }

  std::shared_ptr<ManualTime> time_ = std::make_shared<ManualTime>();
  std::unique_ptr<LockStore> store_;
  Token token_ = 0;
};

// Deep enough to overflow the stack of a recursive reader.
const std::string kDeep = std::string(120'000, '[') + std::string(120'000, ']');
const std::string kFarTime =
    R"({"holders":[{"grant":"00000000000000010000000000000001","mode":"X",)"
    R"("ttl":9223372036854775807,"token":1,"state":"held","since":0,)"
    R"("expires":9223372036854775807}]})";

TEST_F(Damage, is_told_by_name_and_harms_no_other_name) {
  for (const std::string& text : {std::string("{"), kDeep, kFarTime}) {
    if (!damage(text)) GTEST_SKIP() << "this store keeps typed columns, or nothing at all";
    SCOPED_TRACE(text.substr(0, 40));
    Request look;
    look.targets = {{kSound, Mode::X}};
    const std::vector<Request> batch = {acquire(3, kBad), acquire(4, kFree), look,
                                        same_targets(Verb::renew, acquire(2, kBad)),
                                        same_targets(Verb::renew, acquire(1, kSound))};
    const auto replies = store_->apply(batch, soon());
    ASSERT_TRUE(replies) << replies.error().message;
    for (const std::size_t i : {0U, 3U}) {
      EXPECT_EQ(replies->at(i).outcome, Outcome::denied) << i;
      EXPECT_NE(replies->at(i).message.find(kBad), std::string::npos) << replies->at(i).message;
      EXPECT_NE(replies->at(i).message.find("damaged"), std::string::npos)
          << replies->at(i).message;
    }
    EXPECT_EQ(replies->at(1).outcome, Outcome::granted);
    ASSERT_TRUE(replies->at(2).info);
    EXPECT_EQ(replies->at(2).info->holders.size(), 1U);
    EXPECT_EQ(replies->at(4).outcome, Outcome::granted);

    const auto found = store_->find({}, soon());
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->items.size(), 3U);
    for (const LockInfo& info : found->items) {
      EXPECT_EQ(info.damage.empty(), info.key != kBad) << info.key << ": " << info.damage;
      EXPECT_EQ(info.holders.empty(), info.key == kBad) << info.key;
    }
  }
}

TEST_F(Damage, is_found_by_the_doctor_and_forgotten_on_demand_only) {
  if (!damage("{")) GTEST_SKIP() << "this store keeps typed columns, or nothing at all";
  const auto admin = factory().admin();
  const auto findings = admin->examine(Millis(30'000), soon());
  ASSERT_TRUE(findings) << findings.error().message;
  const auto finding = std::find_if(findings->begin(), findings->end(),
                                    [](const Finding& f) { return f.code == "damaged-value"; });
  ASSERT_NE(finding, findings->end());
  EXPECT_NE(finding->what.find(kBad), std::string::npos) << finding->what;
  EXPECT_EQ(finding->what.find(kSound), std::string::npos) << finding->what;

  for (const auto& [key, code] :
       {std::pair(kSound, Code::bad_request), {std::string("DEFAULT:none"), Code::bad_request}}) {
    const auto refused = admin->forget_damaged(key, soon());
    ASSERT_FALSE(refused) << key;
    EXPECT_EQ(refused.error().code, code) << refused.error().message;
  }
  EXPECT_EQ(ask(acquire(5, kSound)).outcome, Outcome::busy) << "it is still held";

  const auto forgotten = admin->forget_damaged(kBad, soon());
  ASSERT_TRUE(forgotten) << forgotten.error().message;
  const Reply next = ask(acquire(6, kBad));
  ASSERT_EQ(next.outcome, Outcome::granted) << next.message;
  EXPECT_GT(next.tokens.at(0), token_) << "tokens never come back";
}

}  // namespace
}  // namespace baton::test
