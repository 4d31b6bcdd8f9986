#include <gtest/gtest.h>

#include "baton/policy.h"

namespace baton {
namespace {

using namespace std::chrono_literals;

Policy documents() {
  Policy policy;
  policy.version = 1;
  policy.subjects["fileset"] = {};
  policy.subjects["document"].parent = "fileset";
  policy.subjects["page"].parent = "document";
  policy.subjects["page"].predicates["extracting"].max_ttl = 5min;
  policy.subjects["audit"].rules.modes = {Mode::X};
  policy.subjects["queue-job"].predicate_scoped = true;
  policy.subjects["export"].rules.metadata = {"purpose"};
  return policy;
}

LockName name(std::string subject, std::vector<std::string> resources = {},
              std::string predicate = "holding") {
  return {.subject = std::move(subject),
          .predicate = std::move(predicate),
          .resources = std::move(resources)};
}

Result<void> judge(const LockName& what, Mode mode = Mode::X, Millis ttl = 30s,
                   const Metadata& metadata = {}) {
  return check(documents(), what, mode, ttl, metadata);
}

using Targets = std::vector<Target>;

Result<Targets> targets(std::vector<LockName> names, Mode mode = Mode::X) {
  return targets_for(documents(), names, mode);
}

TEST(policy_check, an_extraction_above_five_minutes_is_denied_with_the_reason) {
  const auto extracting = name("page", {"fs", "doc", "3"}, "extracting");
  EXPECT_TRUE(judge(extracting, Mode::X, 5min));
  const auto no = judge(extracting, Mode::X, 301s);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::denied);
  EXPECT_EQ(no.error().message,
            "policy: page/extracting may have a TTL of at most 5m, asked for 301s");
}

TEST(policy_check, the_rule_of_one_predicate_leaves_the_others_alone) {
  EXPECT_TRUE(judge(name("page", {"fs", "doc", "3"}, "writing"), Mode::X, 1h));
}

TEST(policy_check, a_shared_audit_is_denied_with_the_reason) {
  EXPECT_TRUE(judge(name("audit", {"status"}), Mode::X));
  const auto no = judge(name("audit", {"status"}), Mode::S);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::denied);
  EXPECT_EQ(no.error().message, "policy: audit may be held exclusive, not shared");
}

TEST(policy_check, required_metadata_must_be_there) {
  EXPECT_TRUE(judge(name("export"), Mode::X, 30s, {{"purpose", "x"}}));
  const auto no = judge(name("export"));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().message, "policy: export must say its metadata 'purpose'");
}

TEST(policy_check, of_several_rules_the_strictest_wins) {
  Policy policy;
  auto& report = policy.subjects["report"];
  report.rules = {.modes = {Mode::X, Mode::S}, .max_ttl = 1min};
  report.predicates["building"] = {.modes = {Mode::X, Mode::U}, .max_ttl = 2min};
  const auto building = name("report", {}, "building");
  EXPECT_TRUE(check(policy, building, Mode::X, 1min, {}));
  EXPECT_FALSE(check(policy, building, Mode::X, 90s, {}));
  EXPECT_FALSE(check(policy, building, Mode::S, 30s, {}));
  EXPECT_FALSE(check(policy, building, Mode::U, 30s, {}));
}

TEST(policy_check, an_undeclared_subject_is_denied_only_where_the_policy_says_so) {
  Policy policy = documents();
  EXPECT_TRUE(check(policy, name("anything"), Mode::X, 30s, {}));
  policy.only_declared = true;
  const auto no = check(policy, name("anything"), Mode::X, 30s, {});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::denied);
  EXPECT_NE(no.error().message.find("baton policy apply"), std::string::npos);
  EXPECT_TRUE(check(policy, name("audit"), Mode::X, 30s, {}));
}

TEST(policy_check, while_draining_nobody_acquires_but_may_try_again) {
  Policy policy = documents();
  policy.draining = true;
  const auto no = check(policy, name("anything"), Mode::X, 30s, {});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::denied);
  EXPECT_TRUE(no.error().retryable);
}

TEST(policy_check, batons_own_names_are_never_forbidden) {
  Policy policy;
  policy.only_declared = true;
  policy.draining = true;
  LockName own = name("schema");
  own.region = std::string(kReservedRegion);
  EXPECT_TRUE(check(policy, own, Mode::X, 30s, {}));
}

TEST(policy_targets, a_page_takes_intent_locks_on_its_document_and_fileset) {
  const auto got = targets({name("page", {"fs", "doc", "3"})});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, (Targets{{"DEFAULT:page:fs:doc:3", Mode::X},
                           {"DEFAULT:document:fs:doc", Mode::IX},
                           {"DEFAULT:fileset:fs", Mode::IX}}));
}

TEST(policy_targets, a_reader_announces_only_reading_above) {
  const auto got = targets({name("page", {"fs", "doc", "3"})}, Mode::S);
  ASSERT_TRUE(got);
  EXPECT_EQ((*got)[0].mode, Mode::S);
  EXPECT_EQ((*got)[1].mode, Mode::IS);
  EXPECT_EQ((*got)[2].mode, Mode::IS);
}

TEST(policy_targets, a_root_with_a_longer_path_is_found_by_its_children) {
  const auto got = targets({name("document", {"tenant", "fs", "doc"})});
  ASSERT_TRUE(got);
  EXPECT_EQ((*got)[1].key, "DEFAULT:fileset:tenant:fs");
}

TEST(policy_targets, pages_of_one_document_ask_for_it_once_and_the_names_come_first) {
  const auto got = targets({name("page", {"fs", "doc", "1"}), name("page", {"fs", "doc", "2"})});
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 4U);
  EXPECT_EQ((*got)[0].key, "DEFAULT:page:fs:doc:1");
  EXPECT_EQ((*got)[1].key, "DEFAULT:page:fs:doc:2");
}

TEST(policy_targets, a_name_that_is_also_an_ancestor_is_asked_for_at_the_supremum) {
  const auto shared = targets({name("page", {"fs", "doc", "1"}), name("document", {"fs", "doc"})});
  ASSERT_TRUE(shared);
  ASSERT_EQ(shared->size(), 3U);
  EXPECT_EQ((*shared)[1], (Target{"DEFAULT:document:fs:doc", Mode::X}));
}

TEST(policy_targets, two_predicates_of_one_name_are_one_lock) {
  const auto got = targets({name("schema", {"t"}, "reading"), name("schema", {"t"}, "writing")});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size(), 1U);
}

TEST(policy_targets, where_the_scope_is_the_predicate_predicates_are_two_locks) {
  const auto got =
      targets({name("queue-job", {"q"}, "reading"), name("queue-job", {"q"}, "writing")});
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, (Targets{{"DEFAULT:queue-job:q::reading", Mode::X},
                           {"DEFAULT:queue-job:q::writing", Mode::X}}));
}

TEST(policy_targets, a_child_without_enough_resources_is_told_its_full_form) {
  const auto no = targets({name("page", {"fs", "3"})});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::denied);
  EXPECT_NE(no.error().message.find("page/{fileset}/{document}/{page}"), std::string::npos);
  EXPECT_FALSE(targets({name("fileset")})) << "it would protect no document";
  EXPECT_TRUE(targets({name("audit")})) << "outside hierarchies no resource is needed";
}

TEST(policy_targets, ancestors_stay_in_the_region_of_the_name) {
  LockName page = name("page", {"fs", "doc", "3"});
  page.region = "EU";
  const auto got = targets({page});
  ASSERT_TRUE(got);
  EXPECT_EQ((*got)[2].key, "EU:fileset:fs");
}

TEST(policy_targets, a_circle_of_parents_ends) {
  Policy policy;
  policy.subjects["a"].parent = "b";
  policy.subjects["b"].parent = "a";
  const std::vector names{name("a", {"1"})};
  EXPECT_FALSE(targets_for(policy, names, Mode::X));
  EXPECT_TRUE(changed_conflicts(policy, policy).empty());
}

TEST(policy_targets, too_many_at_once_is_said_before_the_store_is_asked) {
  std::vector<LockName> names;
  for (int i = 0; i < 40; ++i) names.push_back(name("document", {std::to_string(i), "d"}));
  const auto no = targets(names);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::bad_request);
  EXPECT_FALSE(targets({}));
}

TEST(policy_check, an_unknown_mode_is_a_bad_request) {
  constexpr auto unknown = static_cast<Mode>(77);
  const LockName page{.subject = "page", .resources = {"fs", "7", "1"}};
  EXPECT_EQ(check(documents(), page, unknown, 1s, {}).error().code, Code::bad_request);
  EXPECT_EQ(targets_for(documents(), std::vector{page}, unknown).error().code, Code::bad_request);
}

TEST(policy_changes, only_scope_and_parents_count) {
  const Policy before = documents();
  Policy after = before;
  after.only_declared = true;
  after.subjects["page"].rules.max_ttl = 1s;
  after.subjects["new"] = {};
  EXPECT_TRUE(changed_conflicts(before, after).empty());
  after.subjects["new"].predicate_scoped = true;
  EXPECT_EQ(changed_conflicts(before, after), std::vector<std::string>{"new"});
}

TEST(policy_changes, a_new_grandparent_changes_the_grandchildren_too) {
  const Policy before = documents();
  Policy after = before;
  after.subjects["document"].parent.clear();
  EXPECT_EQ(changed_conflicts(before, after), (std::vector<std::string>{"document", "page"}));
  EXPECT_EQ(changed_conflicts(after, before), (std::vector<std::string>{"document", "page"}));
}

TEST(policy_changes, from_no_policy_everything_with_a_parent_or_scope_changes) {
  EXPECT_EQ(changed_conflicts({}, documents()),
            (std::vector<std::string>{"document", "page", "queue-job"}));
}

}  // namespace
}  // namespace baton
