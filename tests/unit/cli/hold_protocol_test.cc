// What `baton hold` and its program say to each other, without a process.

#include "cli/hold_protocol.h"

#include <gtest/gtest.h>

#include "json/json.h"

namespace baton::cli {
namespace {

using Verb = HoldOrder::Verb;

HoldOrder understood(std::string_view line) {
  auto order = parse_hold_order(line);
  EXPECT_TRUE(order) << line << ": " << (order ? "" : order.error().message);
  return order ? *order : HoldOrder{};
}

void refused(std::string_view line, std::string_view part) {
  const auto order = parse_hold_order(line);
  ASSERT_FALSE(order) << line;
  EXPECT_EQ(order.error().code, Code::bad_request);
  EXPECT_NE(order.error().message.find(part), std::string::npos) << order.error().message;
  EXPECT_LT(order.error().message.size(), 200U) << "a long line is not sent back";
}

std::vector<std::string> lines_of(HoldLines& lines) {
  std::vector<std::string> all;
  while (const auto line = lines.next()) all.push_back(*line ? **line : (*line).error().message);
  return all;
}

nlohmann::json object(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line: " << line;
  return parse_json(line);
}

constexpr Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

TEST(HoldOrder, words_are_for_shells) {
  EXPECT_EQ(understood("release").verb, Verb::release);
  EXPECT_TRUE(understood("release").note.empty());
  EXPECT_EQ(understood("status").verb, Verb::status);
  EXPECT_EQ(understood("note up to row 7").verb, Verb::note);
  EXPECT_EQ(understood("note up to row 7").note.text, "up to row 7");
  EXPECT_EQ(understood("note ").note.text, "");
  EXPECT_FALSE(understood("note a").note.ordinal);
}

TEST(HoldOrder, objects_are_for_programs) {
  EXPECT_EQ(understood(R"({"release":true})").verb, Verb::release);
  EXPECT_EQ(understood(R"({"status":true})").verb, Verb::status);
  const auto note = understood(R"({"note":"a\nb","ordinal":-7})");
  EXPECT_EQ(note.verb, Verb::note);
  EXPECT_EQ(note.note, (NoteChange{.ordinal = -7, .text = "a\nb"}));
  EXPECT_EQ(understood(R"({"ordinal":9223372036854775807})").note.ordinal, INT64_MAX);
  for (const auto* words : {R"({"release":true,"note":"done","ordinal":8})",
                            R"({"note":"done","ordinal":8,"release":true})"}) {
    EXPECT_EQ(understood(words).verb, Verb::release) << words;
    EXPECT_EQ(understood(words).note, (NoteChange{.ordinal = 8, .text = "done"})) << words;
  }
}

TEST(HoldOrder, what_is_not_understood_is_told_and_never_guessed) {
  refused("relaese", "unknown word 'relaese'");
  refused("release now", "unknown word");
  refused("note", "unknown word");
  refused("{", "no JSON object");
  refused("{}", "says nothing");
  refused(R"({"release":false})", "\"release\":true");
  refused(R"({"release":true,"status":true})", "once");
  refused(R"({"status":true,"note":"a"})", "stands alone");
  refused(R"({"note":5})", "is a text");
  refused(R"({"ordinal":"5"})", "whole number");
  refused(R"({"ordinal":1.5})", "whole number");
  refused(R"({"ordinal":9223372036854775808})", "whole number");
  refused(R"({"notes":"a"})", "unknown field 'notes'");
  refused("note \xff", "UTF-8");
  refused("note " + std::string(kMaxNoteBytes + 1, 'x'), "at most 4096 bytes");
  refused(std::string(60'000, 'x'), "unknown word 'xxx");
  refused("{" + std::string(60'000, '['), "no JSON object");
}

TEST(HoldLines, come_out_whole_however_they_came_in) {
  HoldLines lines;
  for (const char c : std::string("release\r\n\nnote a\nsta")) {
    lines.add(std::string(1, c));
  }
  EXPECT_EQ(lines_of(lines), (std::vector<std::string>{"release", "note a"}));
  lines.add("tus\n");
  EXPECT_EQ(lines_of(lines), std::vector<std::string>{"status"});
}

TEST(HoldLines, one_that_is_too_long_is_told_once_and_skipped) {
  const std::string longest(kMaxHoldLine, 'a');
  HoldLines lines;
  lines.add(longest + "\n");
  EXPECT_EQ(lines_of(lines), std::vector<std::string>{longest});
  const std::string told = "a line has at most 65536 bytes";
  lines.add(longest + "a\nstatus\n");
  EXPECT_EQ(lines_of(lines), (std::vector<std::string>{told, "status"}));
  std::vector<std::string> all;
  for (int i = 0; i < 100; ++i) {
    lines.add(std::string(4096, 'b'));
    for (const auto& line : lines_of(lines)) all.push_back(line);
  }
  EXPECT_EQ(all, std::vector<std::string>{told});
  lines.add("b\nrelease\n");
  EXPECT_EQ(lines_of(lines), std::vector<std::string>{"release"});
}

TEST(HoldLine, a_grant_has_what_every_fence_takes) {
  const std::vector<FenceToken> tokens{{"DEFAULT:page:1:2", Mode::X, 42},
                                       {"DEFAULT:doc:1", Mode::IX, 42}};
  const std::string line = granted_line({.names = {"page/1/2"},
                                         .key = "DEFAULT:page:1:2",
                                         .token = 42,
                                         .grant = "g",
                                         .ttl = Millis(30'000),
                                         .note = {.ordinal = 7, .text = "\"fence\":[]}"},
                                         .tokens = tokens},
                                        {at(1'000), at(28'000)});
  const auto granted = object(line);
  EXPECT_EQ(granted["event"], "granted");
  EXPECT_EQ(granted["names"], nlohmann::json({"page/1/2"}));
  EXPECT_EQ(granted["name"], "DEFAULT:page:1:2");
  EXPECT_EQ(granted["mode"], "X");
  EXPECT_EQ(granted["token"], "42") << "a text: many languages read a number as a double";
  EXPECT_EQ(granted["ttl_ms"], 30'000);
  EXPECT_EQ(granted["trusted_ms"], 27'000);
  EXPECT_EQ(granted["trusted_until_boottime_ms"], 28'000);
  EXPECT_EQ(granted["note"]["ordinal"], 7);
  const auto parsed = parse_fence_tokens(granted["fence"].dump());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, tokens);
}

// As docs/hold.md does it in bash, whatever is in the names and the note.
TEST(HoldLine, a_shell_can_cut_the_fence_out_of_a_grant) {
  const std::vector<FenceToken> tokens{{"DEFAULT:\"fence\":", Mode::S, 1}};
  const std::string line =
      granted_line({.key = "\"fence\":", .note = {.text = "\"fence\":[]}"}, .tokens = tokens}, {});
  EXPECT_EQ(line.rfind("{\"event\":\"granted\",", 0), 0U);
  const auto begin = line.find("\"fence\":[");
  ASSERT_NE(begin, std::string::npos);
  const std::string cut = line.substr(begin + 8, line.size() - begin - 8 - 2);
  EXPECT_EQ(cut, print_fence_tokens(tokens));
}

TEST(HoldLine, trust_and_the_end_of_a_lock_are_never_below_zero) {
  EXPECT_EQ(object(renewed_line({at(9), at(5)}))["trusted_ms"], 0);
  EXPECT_EQ(object(lost_line("broken: gone", Millis(-5)))["over_in_ms"], 0);
  EXPECT_EQ(object(lost_line("broken: gone", Millis(5)))["reason"], "broken: gone");
  EXPECT_EQ(object(status_line(false, {at(1), at(1)}))["held"], false);
}

TEST(HoldLine, an_error_says_what_can_be_done_about_it) {
  const auto error = object(error_line(
      {.code = Code::unavailable, .message = "a\nb", .retryable = true, .in_doubt = true}, true));
  EXPECT_EQ(error["code"], "unavailable");
  EXPECT_EQ(error["message"], "a\nb");
  EXPECT_EQ(error["retryable"], true);
  EXPECT_EQ(error["in_doubt"], true);
  EXPECT_EQ(error["final"], true);
}

}  // namespace
}  // namespace baton::cli
