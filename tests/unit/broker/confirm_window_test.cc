#include "broker/rabbitmq/confirm_window.h"

#include <gtest/gtest.h>

namespace baton::broker::rabbitmq {
namespace {

using Confirms = std::vector<Confirm>;

std::vector<std::pair<std::uint64_t, PublishOutcome>> outcomes(const Confirms& confirms) {
  std::vector<std::pair<std::uint64_t, PublishOutcome>> all;
  for (const auto& confirm : confirms) all.emplace_back(confirm.tag, confirm.outcome);
  return all;
}
using Expected = std::vector<std::pair<std::uint64_t, PublishOutcome>>;

constexpr auto kTaken = PublishOutcome::taken;
constexpr auto kReturned = PublishOutcome::returned;
constexpr auto kRefused = PublishOutcome::refused;
constexpr auto kUnknown = PublishOutcome::unknown;

class Window : public ::testing::Test {
 protected:
  Window() {
    for (std::uint64_t tag : {11, 12, 13, 14}) window.sent(tag, tag == 14 ? 13 : tag);
  }
  ConfirmWindow window;
  Confirms confirms;
};

TEST_F(Window, single_confirms_come_in_any_order_and_once) {
  EXPECT_TRUE(window.resolve(3, false, true, confirms));
  EXPECT_TRUE(window.resolve(1, false, false, confirms));
  EXPECT_TRUE(window.resolve(3, false, true, confirms));
  EXPECT_EQ(outcomes(confirms), (Expected{{13, kTaken}, {11, kRefused}}));
  EXPECT_TRUE(window.resolve(4, true, true, confirms));
  EXPECT_EQ(outcomes(confirms),
            (Expected{{13, kTaken}, {11, kRefused}, {12, kTaken}, {14, kTaken}}));
  EXPECT_TRUE(window.empty());
}

TEST_F(Window, zero_and_multiple_is_all) {
  EXPECT_TRUE(window.resolve(0, true, false, confirms));
  EXPECT_EQ(confirms.size(), 4U);
  EXPECT_FALSE(confirms[0].why.empty());
  EXPECT_TRUE(window.empty());
}

TEST_F(Window, a_confirm_of_what_was_never_sent_is_an_error) {
  EXPECT_FALSE(window.resolve(5, false, true, confirms));
  EXPECT_FALSE(window.resolve(5, true, true, confirms));
  EXPECT_TRUE(confirms.empty());
  EXPECT_TRUE(window.resolve(4, true, true, confirms));
  EXPECT_TRUE(window.resolve(2, true, true, confirms)) << "again, which is harmless";
  EXPECT_EQ(confirms.size(), 4U);
}

TEST_F(Window, an_ack_of_a_returned_message_is_no_delivery) {
  window.returned(12, "nobody wants it");
  window.returned(99, "of nobody here");
  EXPECT_TRUE(window.resolve(2, true, true, confirms));
  EXPECT_EQ(outcomes(confirms), (Expected{{11, kTaken}, {12, kReturned}}));
  EXPECT_EQ(confirms[1].why, "nobody wants it");
}

TEST_F(Window, of_equal_messages_the_oldest_that_is_open_is_the_returned_one) {
  window.returned(13, "first");
  window.returned(13, "second");
  window.returned(13, "there is no third");
  EXPECT_TRUE(window.resolve(4, true, true, confirms));
  EXPECT_EQ(outcomes(confirms),
            (Expected{{11, kTaken}, {12, kTaken}, {13, kReturned}, {14, kReturned}}));
  EXPECT_EQ(confirms[2].why, "first");
  EXPECT_EQ(confirms[3].why, "second");
}

TEST_F(Window, what_is_abandoned_is_unknown_and_the_numbers_begin_again) {
  EXPECT_TRUE(window.resolve(2, false, true, confirms));
  window.returned(13, "lost with the rest");
  confirms.clear();
  window.abandon("cut", confirms);
  EXPECT_EQ(outcomes(confirms), (Expected{{11, kUnknown}, {13, kUnknown}, {14, kUnknown}}));
  EXPECT_EQ(confirms[0].why, "cut");
  window.sent(15, 15);
  confirms.clear();
  EXPECT_TRUE(window.resolve(1, false, true, confirms));
  EXPECT_EQ(outcomes(confirms), (Expected{{15, kTaken}}));
}

TEST(Fingerprint, depends_on_each_part_and_where_it_ends) {
  const auto print = fingerprint("a", "b", "c");
  EXPECT_EQ(print, fingerprint("a", "b", "c"));
  EXPECT_NE(print, fingerprint("a", "b", "d"));
  EXPECT_NE(print, fingerprint("b", "a", "c"));
  EXPECT_NE(fingerprint("ab", "", ""), fingerprint("a", "b", ""));
}

}  // namespace
}  // namespace baton::broker::rabbitmq
