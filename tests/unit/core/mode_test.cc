#include "baton/mode.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace baton {
namespace {

// The table of the lock model, as people read it.
constexpr const char* kTable = R"(
held IS S U IX SIX X
IS   +  + + +  +   -
S    +  + + -  -   -
U    +  + - -  -   -
IX   +  - - +  -   -
SIX  +  - - -  -   -
X    -  - - -  -   -
)";

TEST(Mode, holders_exclude_each_other_as_the_table_says) {
  std::istringstream table(kTable);
  std::string word;
  table >> word;
  std::vector<Mode> columns;
  for (std::size_t i = 0; i < kAllModes.size(); ++i) {
    table >> word;
    columns.push_back(parse_mode(word).value());
  }
  for (std::size_t row = 0; row < kAllModes.size(); ++row) {
    table >> word;
    const Mode held = parse_mode(word).value();
    for (const Mode asked : columns) {
      table >> word;
      EXPECT_EQ(compatible(held, asked), word == "+")
          << short_name(held) << " held, " << short_name(asked) << " asked";
      EXPECT_EQ(compatible(held, asked), compatible(asked, held));
    }
  }
}

TEST(Mode, what_covers_another_excludes_all_that_the_other_does) {
  for (const Mode strong : kAllModes) {
    for (const Mode weak : kAllModes) {
      if (!covers(strong, weak)) continue;
      for (const Mode other : kAllModes) {
        if (compatible(strong, other)) {
          EXPECT_TRUE(compatible(weak, other))
              << short_name(strong) << " covers " << short_name(weak);
        }
      }
    }
  }
}

TEST(Mode, covering_is_an_order) {
  for (const Mode a : kAllModes) {
    EXPECT_TRUE(covers(a, a));
    EXPECT_TRUE(covers(Mode::X, a));
    EXPECT_TRUE(covers(a, Mode::IS));
    for (const Mode b : kAllModes) {
      EXPECT_TRUE(a == b || !covers(a, b) || !covers(b, a));
      for (const Mode c : kAllModes) {
        EXPECT_TRUE(covers(a, c) || !covers(a, b) || !covers(b, c));
      }
    }
  }
}

TEST(Mode, the_supremum_is_the_least_mode_that_covers_both) {
  for (const Mode a : kAllModes) {
    EXPECT_EQ(supremum(a, a), a);
    for (const Mode b : kAllModes) {
      const Mode both = supremum(a, b);
      EXPECT_EQ(both, supremum(b, a));
      EXPECT_TRUE(covers(both, a));
      EXPECT_TRUE(covers(both, b));
      for (const Mode other : kAllModes) {
        EXPECT_TRUE(covers(other, both) || !covers(other, a) || !covers(other, b));
        EXPECT_EQ(supremum(supremum(a, b), other), supremum(a, supremum(b, other)));
      }
    }
  }
  EXPECT_EQ(supremum(Mode::S, Mode::IX), Mode::SIX);
}

TEST(Mode, a_conversion_goes_down_as_asked_and_up_to_the_supremum) {
  EXPECT_EQ(converted(Mode::S, Mode::X), Mode::X);
  EXPECT_EQ(converted(Mode::X, Mode::S), Mode::S);
  EXPECT_EQ(converted(Mode::S, Mode::IX), Mode::SIX);
  EXPECT_EQ(converted(Mode::SIX, Mode::IS), Mode::IS);
  EXPECT_EQ(converted(Mode::U, Mode::U), Mode::U);
}

TEST(Mode, readers_announce_themselves_above_and_writers_too) {
  EXPECT_EQ(ancestor_mode(Mode::IS), Mode::IS);
  EXPECT_EQ(ancestor_mode(Mode::S), Mode::IS);
  for (const Mode writer : {Mode::IX, Mode::U, Mode::SIX, Mode::X}) {
    EXPECT_EQ(ancestor_mode(writer), Mode::IX);
  }
}

TEST(Mode, a_number_that_is_no_mode_goes_with_nothing_and_has_no_name) {
  constexpr auto unknown = static_cast<Mode>(77);
  EXPECT_FALSE(is_mode(unknown));
  for (const Mode mode : kAllModes) {
    EXPECT_TRUE(is_mode(mode));
    EXPECT_FALSE(compatible(mode, unknown));
    EXPECT_FALSE(compatible(unknown, mode));
    EXPECT_FALSE(covers(mode, unknown));
    EXPECT_FALSE(covers(unknown, mode));
  }
  EXPECT_EQ(short_name(unknown), "unknown");
  EXPECT_EQ(long_name(unknown), "unknown");
}

TEST(Mode, both_spellings_are_read_in_any_case) {
  for (const Mode mode : kAllModes) {
    EXPECT_EQ(parse_mode(short_name(mode)), mode);
    EXPECT_EQ(parse_mode(long_name(mode)), mode);
  }
  EXPECT_EQ(parse_mode("Exclusive"), Mode::X);
  EXPECT_EQ(parse_mode("sHaReD"), Mode::S);
  EXPECT_EQ(parse_mode("six"), Mode::SIX);
  for (const auto* other : {"", "XX", " X", "X ", "excl", "share"}) {
    EXPECT_EQ(parse_mode(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace baton
