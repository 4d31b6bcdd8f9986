#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "baton/policy.h"
#include "policy/duration.h"
#include "policy/print_policy.h"
#include "policy/suggest.h"

namespace baton {
namespace {

using namespace std::chrono_literals;

std::string refusal(std::string_view yaml) {
  const auto parsed = parse_policy(yaml);
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, Code::bad_request);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos) << "one line";
  return parsed.error().message;
}

constexpr std::string_view kGood = R"(
subjects:
  fileset: {}
  document: {parent: fileset, description: "A file: one of many"}
  page:
    parent: document
    max-ttl: 1h
    predicates:
      extracting: {max-ttl: 5m}
      reading: {modes: [shared, IS]}
  audit: {modes: exclusive, required-metadata: [purpose, ticket]}
  queue-job: {scope: predicate}
  plain:
undeclared: deny
)";

TEST(policy_document, says_what_it_says) {
  const auto parsed = parse_policy(kGood);
  ASSERT_TRUE(parsed) << parsed.error().message;
  Policy expected;
  expected.only_declared = true;
  expected.subjects["fileset"] = {};
  expected.subjects["plain"] = {};
  expected.subjects["document"].parent = "fileset";
  expected.subjects["document"].description = "A file: one of many";
  auto& page = expected.subjects["page"];
  page.parent = "document";
  page.rules.max_ttl = 1h;
  page.predicates["extracting"].max_ttl = 5min;
  page.predicates["reading"].modes = {Mode::S, Mode::IS};
  expected.subjects["audit"].rules = {.modes = {Mode::X}, .metadata = {"purpose", "ticket"}};
  expected.subjects["queue-job"].predicate_scoped = true;
  EXPECT_EQ(*parsed, expected);
}

TEST(policy_document, undeclared_subjects_are_allowed_unless_it_says_deny) {
  EXPECT_FALSE(parse_policy("subjects: {}").value().only_declared);
  EXPECT_FALSE(parse_policy("undeclared: allow").value().only_declared);
}

TEST(policy_document, an_unknown_key_is_refused_with_its_line_and_the_nearest_one) {
  EXPECT_EQ(refusal("subjects:\n  page:\n    max_ttl: 5m\n"),
            "line 3: unknown key 'max_ttl'; did you mean 'max-ttl'?");
  EXPECT_EQ(refusal("subject: {}\n"), "line 1: unknown key 'subject'; did you mean 'subjects'?");
  EXPECT_EQ(refusal("subjects:\n  a:\n    predicates:\n      p: {mode: shared}\n"),
            "line 4: unknown key 'mode'; did you mean 'modes'?");
  EXPECT_EQ(refusal("zebra: {}\n"),
            "line 1: unknown key 'zebra'; there is 'subjects' and 'undeclared'");
}

TEST(policy_document, an_unknown_word_is_refused_with_the_nearest_one) {
  EXPECT_EQ(refusal("subjects:\n  a: {modes: [exclusiv]}\n"),
            "line 2: unknown mode 'exclusiv'; did you mean 'exclusive'?");
  EXPECT_EQ(refusal("subjects:\n  a: {scope: predicates}\n"),
            "line 2: unknown scope 'predicates'; did you mean 'predicate'?");
  EXPECT_EQ(refusal("undeclared: denny\n"), "line 1: unknown word 'denny'; did you mean 'deny'?");
}

TEST(policy_document, a_bad_duration_is_refused) {
  EXPECT_EQ(refusal("subjects:\n  a:\n    max-ttl: 300\n"),
            "line 3: '300' is not a duration; write 500ms, 30s, 5m or 1h30m");
  EXPECT_EQ(refusal("subjects: {a: {max-ttl: 0s}}"),
            "line 1: max-ttl must be above zero and at most 24h");
  EXPECT_EQ(refusal("subjects: {a: {max-ttl: 25h}}"),
            "line 1: max-ttl must be above zero and at most 24h");
}

TEST(policy_document, hierarchies_must_make_sense) {
  EXPECT_EQ(refusal("subjects:\n  a: {parent: b}\n"),
            "line 2: the parent 'b' of 'a' is not declared");
  EXPECT_EQ(refusal("subjects:\n  a: {parent: b}\n  b: {parent: a}\n"),
            "line 2: 'a' is its own ancestor: the parents go round in a circle");
  EXPECT_EQ(refusal("subjects: {a: {parent: a}}"),
            "line 1: 'a' is its own ancestor: the parents go round in a circle");
  EXPECT_NE(refusal("subjects: {c: {parent: a}, a: {parent: b}, b: {parent: a}}"), "accepted");
  EXPECT_EQ(refusal("subjects:\n  b: {}\n  a: {parent: b, scope: predicate}\n"),
            "line 3: 'a' has a parent, so its scope cannot be predicate: the parent's locks would "
            "not see it");
  EXPECT_EQ(refusal("subjects:\n  b: {scope: predicate}\n  a: {parent: b}\n"),
            "line 3: 'b' is the parent of 'a', so its scope cannot be predicate");
}

TEST(policy_document, empty_names_and_wrong_kinds_are_refused) {
  EXPECT_EQ(refusal("subjects:\n  \"\": {}\n"), "line 2: an empty subject");
  EXPECT_EQ(refusal("subjects: {a: {predicates: {'': {}}}}"), "line 1: an empty predicate");
  EXPECT_EQ(refusal("subjects: {a: {parent: ''}}"), "line 1: an empty parent");
  EXPECT_EQ(refusal("subjects: {a: {modes: []}}"),
            "line 1: modes is empty, which would forbid every lock");
  EXPECT_EQ(refusal("subjects: [a]"), "line 1: subjects must be a map, not a list");
  EXPECT_EQ(refusal("- a"), "line 1: the policy must be a map, not a list");
  EXPECT_EQ(refusal("subjects: {a: {max-ttl: [1s]}}"), "line 1: max-ttl must be text, not a list");
  EXPECT_EQ(refusal(""), "the policy is empty; write 'subjects: {}' if that is meant");
  EXPECT_NE(refusal("subjects: {\"a\\nb\": {}}").find("control character"), std::string::npos);
  EXPECT_NE(refusal("subjects: {? [a] : {}}"), "accepted");
  EXPECT_EQ(refusal("subjects: {a: {}}\nsubjects: {b: {}}"),
            "line 2: the key 'subjects' is given twice");
  EXPECT_NE(refusal("subjects: {}\n---\nsubjects: {}\n"), "accepted");
}

TEST(policy_document, what_makes_a_short_file_stand_for_a_huge_one_is_refused) {
  EXPECT_NE(refusal("subjects: &all {a: {}}\n").find("anchors"), std::string::npos);
  EXPECT_NE(refusal("subjects:\n  a: &a {}\n  b: *a\n").find("anchors"), std::string::npos);
  EXPECT_NE(refusal("subjects: !!map {}\n").find("tags"), std::string::npos);
  EXPECT_NE(refusal("x: " + std::string(1000, '[')), "accepted");
  EXPECT_NE(refusal("x: " + std::string(100, '[') + std::string(100, ']')).find("too deeply"),
            std::string::npos);
  EXPECT_NE(refusal("# " + std::string(300'000, 'x')).find("262144"), std::string::npos);
  EXPECT_NE(refusal("subjects: {\xFF: {}}").find("UTF-8"), std::string::npos);
}

TEST(policy_document, broken_yaml_is_refused_with_its_line) {
  EXPECT_EQ(refusal("subjects:\n  a: {parent: b\n").substr(0, 6), "line 3");
  EXPECT_EQ(refusal("subjects:\n\ta: {}\n").substr(0, 16), "line 2: not YAML");
}

TEST(policy_document, what_is_printed_is_read_again) {
  const auto parsed = parse_policy(kGood).value();
  const auto again = parse_policy(policy::print_policy(parsed));
  ASSERT_TRUE(again) << again.error().message << "\n" << policy::print_policy(parsed);
  EXPECT_EQ(*again, parsed);
}

TEST(policy_document, a_control_character_is_printed_as_an_escape_and_read_again) {
  Policy policy;
  policy.subjects["page"].description = "a \x1b[31m \x7f \xc2\x80 \xc2\x9b \xc2\xa0 \xc3\xa4";
  const auto printed = policy::print_policy(policy);
  EXPECT_NE(printed.find(R"(a \x1b[31m \x7f \x80 \x9b )"), std::string::npos) << printed;
  EXPECT_NE(printed.find("\xc2\xa0 \xc3\xa4"), std::string::npos) << printed;
  EXPECT_EQ(parse_policy(printed).value(), policy);
}

TEST(policy_document, what_is_stored_is_read_again_on_one_line) {
  auto policy = parse_policy(kGood).value();
  policy.version = 7;
  policy.draining = true;
  const auto text = to_stored(policy);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto again = from_stored(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, policy);
}

TEST(policy_document, a_stored_policy_that_is_not_understood_is_nobodys_guess) {
  for (const auto* text :
       {"", "{", "[]", "null", R"({"version":-1})", R"({"version":"1"})", R"({"future":1})",
        R"({"version":1.5})", R"({"subjects":{"a":{"future":1}}})",
        R"({"subjects":{"a":{"parent":"b"}}})", R"({"subjects":{"a":{"modes":["Z"]}}})",
        R"({"subjects":{"a":{"max_ttl_ms":0}}})", R"({"subjects":{"":{}}})",
        R"({"subjects":{"a":{"parent":"a"}}})"}) {
    const auto read = from_stored(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::bad_store);
  }
}

TEST(policy_document, the_shipped_example_has_every_rule_of_its_design) {
  std::ifstream file(BATON_EXAMPLE_POLICY);
  std::stringstream text;
  text << file.rdbuf();
  const auto parsed = parse_policy(text.str());
  ASSERT_TRUE(parsed) << parsed.error().message;
  for (const auto* subject : {"fileset", "document", "page", "consolidation-job", "extraction-job",
                              "schema", "queue-job", "audit"}) {
    EXPECT_TRUE(parsed->subjects.contains(subject)) << subject;
  }
  const LockName page{.subject = "page", .predicate = "extracting", .resources = {"f", "d", "3"}};
  EXPECT_TRUE(check(*parsed, page, Mode::X, 2min, {}));
  EXPECT_FALSE(check(*parsed, page, Mode::X, 6min, {}));
  const LockName audit{.subject = "audit", .predicate = "processing", .resources = {"status"}};
  EXPECT_TRUE(check(*parsed, audit, Mode::X, 5min, {}));
  EXPECT_FALSE(check(*parsed, audit, Mode::S, 5min, {}));
  const LockName schema{.subject = "schema", .predicate = "reading", .resources = {"t", "type"}};
  EXPECT_TRUE(check(*parsed, schema, Mode::S, 5s, {}));
  EXPECT_FALSE(check(*parsed, {.subject = "typo"}, Mode::X, 5s, {}));
  EXPECT_EQ(targets_for(*parsed, std::vector{page}, Mode::X).value().size(), 3U);
}

TEST(durations, are_whole_numbers_with_units) {
  EXPECT_EQ(policy::parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(policy::parse_duration("30s").value(), 30s);
  EXPECT_EQ(policy::parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(policy::parse_duration("0s").value(), 0ms);
  for (const auto* text :
       {"", "5", "1d", "-5s", "+5s", "1.5h", " 5s", "5 s", "5s ", "s", "5x", "30s1m", "1m1m", "5S",
        "99999999999999999999s", "9223372036854775807h", "10000h"}) {
    EXPECT_FALSE(policy::parse_duration(text)) << text;
  }
}

TEST(durations, are_printed_as_they_are_written) {
  for (const auto* text : {"500ms", "30s", "1m30s", "1h30m", "24h", "0s"}) {
    EXPECT_EQ(policy::print_duration(policy::parse_duration(text).value()), text);
  }
}

TEST(suggestions, are_only_made_when_they_are_likely) {
  const std::vector<std::string_view> known{"parent", "scope", "modes"};
  EXPECT_EQ(policy::nearest("parnet", known), "parent");
  EXPECT_EQ(policy::nearest("mode", known), "modes");
  EXPECT_EQ(policy::nearest("zebra", known), "");
  EXPECT_EQ(policy::nearest(std::string(100'000, 'x'), known), "");
}

}  // namespace
}  // namespace baton
