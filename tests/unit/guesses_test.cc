#include "store/postgres/guesses.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace baton::store::postgres {
namespace {

std::string name_of(int i) { return "DEFAULT:order:" + std::to_string(i); }

int remembered(const Guesses& guesses, int names) {
  int found = 0;
  for (int i = 0; i < names; ++i) found += guesses.may_have_row(name_of(i)) ? 1 : 0;
  return found;
}

TEST(Guesses, nothing_is_believed_of_a_name_that_was_never_seen) {
  EXPECT_EQ(remembered(Guesses{}, 10'000), 0);
}

// Two names that pushed each other out would take the longer way at every turn.
TEST(Guesses, a_thousand_names_in_use_do_not_push_each_other_out) {
  Guesses guesses;
  for (int i = 0; i < 1000; ++i) guesses.has_row(name_of(i));
  EXPECT_EQ(remembered(guesses, 1000), 1000);
}

TEST(Guesses, most_of_twenty_thousand_names_are_remembered) {
  Guesses guesses;
  for (int i = 0; i < 20'000; ++i) guesses.has_row(name_of(i));
  EXPECT_GT(remembered(guesses, 20'000), 16'000);
}

TEST(Guesses, the_newest_name_is_remembered_however_many_came_before) {
  Guesses guesses;
  for (int i = 0; i < 200'000; ++i) {
    guesses.has_row(name_of(i));
    ASSERT_TRUE(guesses.may_have_row(name_of(i)));
  }
}

TEST(Guesses, may_be_told_and_asked_by_many_threads) {
  Guesses guesses;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&guesses] {
        for (int i = 0; i < 2000; ++i) {
          guesses.has_row(name_of(i));
          (void)guesses.may_have_row(name_of(i));
        }
      });
    }
  }
  EXPECT_GT(remembered(guesses, 2000), 1900);
}

}  // namespace
}  // namespace baton::store::postgres
