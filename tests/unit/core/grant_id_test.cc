#include "baton/grant_id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// As a server does that opens its locks, forks its workers and lets them lock too.
TEST(GrantIds, new_ones_differ_between_a_process_and_those_it_forks) {
  std::set<GrantId> all{new_grant_id()};
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
      const GrantId id = new_grant_id();
      _exit(write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
    }
    GrantId id;
    EXPECT_EQ(read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    close(ends[0]);
    close(ends[1]);
    all.insert(id);
  }
  all.insert(new_grant_id());
  EXPECT_EQ(all.size(), 4U);
}

TEST(GrantIds, only_zero_is_empty) {
  EXPECT_TRUE(GrantId{}.empty());
  EXPECT_FALSE((GrantId{0, 1}).empty());
  EXPECT_FALSE((GrantId{1, 0}).empty());
}

}  // namespace
}  // namespace baton
