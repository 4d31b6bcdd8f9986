#include <gtest/gtest.h>

#include "baton/name.h"
#include "core/apply.h"

namespace baton::core {
namespace {

LockInfo held(const LockName& name, Mode mode = Mode::X, const std::string& owner = "node-1",
              const std::string& predicate = "holding") {
  LockInfo info;
  info.key = key_of(name);
  HolderInfo holder;
  holder.mode = mode;
  holder.owner = owner;
  holder.predicate = predicate;
  info.holders.push_back(holder);
  return info;
}

LockInfo noted(const LockName& name) {
  LockInfo info;
  info.key = key_of(name);
  info.note.ordinal = 1;
  return info;
}

const LockName kPage{.subject = "page", .resources = {"fs", "7"}};

TEST(Query, an_empty_one_matches_whatever_somebody_holds_or_waits_for) {
  EXPECT_TRUE(matches({}, held(kPage)));
  LockInfo waited = noted(kPage);
  EXPECT_FALSE(matches({}, waited));
  waited.waiters.push_back({.owner = "node-2"});
  waited.waiting = 1;
  EXPECT_TRUE(matches({}, waited));
}

TEST(Query, names_match_by_region_subject_and_leading_resources) {
  EXPECT_TRUE(matches({.subject = "page"}, held(kPage)));
  EXPECT_FALSE(matches({.subject = "pag"}, held(kPage)));
  EXPECT_FALSE(matches({.subject = "pages"}, held(kPage)));
  EXPECT_TRUE(matches({.resources = {"fs"}}, held(kPage)));
  EXPECT_TRUE(matches({.resources = {"fs", "7"}}, held(kPage)));
  EXPECT_FALSE(matches({.resources = {"7"}}, held(kPage)));
  EXPECT_FALSE(matches({.resources = {"f"}}, held(kPage)));
  EXPECT_FALSE(matches({.resources = {"fs", "7", "x"}}, held(kPage)));
  EXPECT_TRUE(matches({.region = "DEFAULT"}, held(kPage)));
  EXPECT_FALSE(matches({.region = "EU"}, held(kPage)));
}

TEST(Query, holders_and_waiters_match_by_all_that_is_said_of_them_at_once) {
  const LockInfo info = held(kPage, Mode::S, "node-1", "reading");
  EXPECT_TRUE(matches({.predicate = "reading", .mode = Mode::S, .owner = "node-1"}, info));
  EXPECT_FALSE(matches({.predicate = "writing"}, info));
  EXPECT_FALSE(matches({.mode = Mode::X}, info));
  EXPECT_FALSE(matches({.owner = "node-2"}, info));
  LockInfo two = info;
  two.waiters.push_back({.mode = Mode::X, .predicate = "writing", .owner = "node-2"});
  two.waiting = 1;
  EXPECT_TRUE(matches({.predicate = "writing", .owner = "node-2"}, two));
  EXPECT_FALSE(matches({.predicate = "writing", .owner = "node-1"}, two));
}

TEST(Query, names_that_only_keep_a_note_are_shown_on_request) {
  EXPECT_TRUE(matches({.idle = true}, noted(kPage)));
  EXPECT_TRUE(matches({.subject = "page", .idle = true}, noted(kPage)));
  EXPECT_FALSE(matches({.owner = "node-1", .idle = true}, noted(kPage)));
  LockInfo nothing;
  nothing.key = key_of(kPage);
  EXPECT_FALSE(matches({.idle = true}, nothing));
}

TEST(Query, batons_own_names_are_shown_only_when_asked_for) {
  const LockName own{.subject = "schema", .region = std::string(kReservedRegion)};
  EXPECT_FALSE(matches({}, held(own)));
  EXPECT_FALSE(matches({.subject = "schema"}, held(own)));
  EXPECT_TRUE(matches({.region = std::string(kReservedRegion)}, held(own)));
}

TEST(Query, something_that_is_no_key_never_matches) {
  LockInfo broken = held(kPage);
  broken.key = "page";
  EXPECT_FALSE(matches({}, broken));
}

TEST(Query, every_key_that_matches_starts_with_the_prefix) {
  const std::vector<LockName> names = {
      kPage,
      {.subject = "page"},
      {.subject = "pages"},
      {.subject = "a:b", .resources = {"50%", "*"}},
      {.subject = "a:b", .resources = {"50%", "*", "c/d"}, .region = "E:U"},
  };
  for (const LockName& about : names) {
    for (std::size_t depth = 0; depth <= about.resources.size(); ++depth) {
      Query query;
      query.region = about.region;
      query.subject = about.subject;
      const auto end = about.resources.begin() + static_cast<std::ptrdiff_t>(depth);
      query.resources.assign(about.resources.begin(), end);
      EXPECT_TRUE(matches(query, held(about)));
      for (const LockName& name : names) {
        if (!matches(query, held(name))) continue;
        EXPECT_TRUE(key_of(name).starts_with(key_prefix(query))) << key_of(name);
      }
    }
  }
  EXPECT_EQ(key_prefix({.region = "EU"}), "EU:");
  EXPECT_EQ(key_prefix({.subject = "page"}), "");
}

}  // namespace
}  // namespace baton::core
