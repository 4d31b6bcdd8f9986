#include "baton/grant_id.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace baton {
namespace {

TEST(GrantIds, print_as_32_digits_and_parse_back) {
  const GrantId id{0x0123456789ABCDEFULL, 0x00000000000000FFULL};
  EXPECT_EQ(to_string(id), "0123456789abcdef00000000000000ff");
  EXPECT_EQ(parse_grant_id(to_string(id)), id);
  EXPECT_EQ(parse_grant_id("0123456789ABCDEF00000000000000FF"), id);
  EXPECT_EQ(parse_grant_id(to_string(GrantId{})), GrantId{});
  EXPECT_EQ(to_string(GrantId{~0ULL, ~0ULL}), std::string(32, 'f'));
}

TEST(GrantIds, anything_else_is_none) {
  const std::string good = to_string(GrantId{1, 2});
  for (const auto& text : {std::string(), good.substr(1), good + "0", std::string(32, 'g'),
                           " " + good.substr(1), "-" + good.substr(1), good.substr(0, 31) + ":",
                           good.substr(0, 31) + std::string(1, '\0')}) {
    EXPECT_EQ(parse_grant_id(text), std::nullopt) << text;
  }
}

TEST(GrantIds, new_ones_differ_within_and_across_threads) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 2000;
  std::vector<std::vector<GrantId>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made) {
      threads.emplace_back([&mine] {
        for (std::size_t i = 0; i < kEach; ++i) mine.push_back(new_grant_id());
      });
    }
  }
  std::set<GrantId> all;
  for (const auto& mine : made) {
    for (const GrantId id : mine) {
      EXPECT_FALSE(id.empty());
      all.insert(id);
    }
  }
  EXPECT_EQ(all.size(), kThreads * kEach);
}

TEST(GrantIds, only_zero_is_empty) {
  EXPECT_TRUE(GrantId{}.empty());
  EXPECT_FALSE((GrantId{0, 1}).empty());
  EXPECT_FALSE((GrantId{1, 0}).empty());
}

}  // namespace
}  // namespace baton
