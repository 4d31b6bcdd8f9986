#include "store/postgres/name_hints.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace baton::store::postgres {
namespace {

std::string name_of(int i) { return "DEFAULT:order:" + std::to_string(i); }

int remembered(const NameHints& hints, int names) {
  int found = 0;
  for (int i = 0; i < names; ++i) found += hints.may_be_free(name_of(i)) ? 1 : 0;
  return found;
}

TEST(NameHints, nothing_is_believed_of_a_name_that_was_never_seen) {
  EXPECT_EQ(remembered(NameHints{}, 10'000), 0);
}

// Two names that pushed each other out would take the longer way at every turn.
TEST(NameHints, a_thousand_names_in_use_do_not_push_each_other_out) {
  NameHints hints;
  for (int i = 0; i < 1000; ++i) hints.found_free(name_of(i));
  EXPECT_EQ(remembered(hints, 1000), 1000);
}

TEST(NameHints, most_of_twenty_thousand_names_are_remembered) {
  NameHints hints;
  for (int i = 0; i < 20'000; ++i) hints.found_free(name_of(i));
  EXPECT_GT(remembered(hints, 20'000), 16'000);
}

TEST(NameHints, the_newest_name_is_remembered_however_many_came_before) {
  NameHints hints;
  for (int i = 0; i < 200'000; ++i) {
    hints.found_free(name_of(i));
    ASSERT_TRUE(hints.may_be_free(name_of(i)));
  }
}

TEST(NameHints, a_name_that_was_found_busy_is_not_believed_to_be_free) {
  NameHints hints(Millis(3'600'000));
  for (int i = 0; i < 1000; ++i) hints.found_free(name_of(i));
  EXPECT_FALSE(hints.was_busy(name_of(7)));
  hints.found_busy(name_of(7));
  EXPECT_TRUE(hints.was_busy(name_of(7)));
  EXPECT_FALSE(hints.may_be_free(name_of(7)));
  EXPECT_EQ(remembered(hints, 1000), 999);
  hints.found_free(name_of(7));
  EXPECT_EQ(remembered(hints, 1000), 1000);
}

TEST(NameHints, may_be_told_and_asked_by_many_threads) {
  NameHints hints;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&hints] {
        for (int i = 0; i < 2000; ++i) {
          hints.found_free(name_of(i));
          (void)hints.may_be_free(name_of(i));
        }
      });
    }
  }
  EXPECT_GT(remembered(hints, 2000), 1900);
}

}  // namespace
}  // namespace baton::store::postgres
