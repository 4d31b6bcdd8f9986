#include "baton/name.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace baton {
namespace {

LockName name(std::string subject, std::vector<std::string> resources = {}) {
  return {.subject = std::move(subject), .resources = std::move(resources)};
}

// Names made of the characters that are most likely to go wrong.
class RandomNames {
 public:
  LockName next() {
    LockName made;
    made.subject = part();
    made.predicate = part();
    for (std::size_t i = random_() % 4; i > 0; --i) made.resources.push_back(part());
    if (random_() % 2 == 0) made.region = part();
    return made;
  }

 private:
  std::string part() {
    static const std::vector<std::string> pieces = {
        "a", "Z", "0",   " ", ":",    "::", "%",    "%3A",
        "*", "/", "%2F", "@", "lock", "é",  "日本", "🙂"};
    std::string text;
    for (std::size_t i = 1 + random_() % 3; i > 0; --i) text += pieces[random_() % pieces.size()];
    return text;
  }
  std::mt19937_64 random_{7};
};

TEST(Names, print_as_people_know_them) {
  const LockName page{.subject = "page", .predicate = "extracting", .resources = {"fs", "7"}};
  EXPECT_EQ(print(page, Mode::X), "lock:exclusive:page:extracting:fs:7");
  LockName elsewhere = page;
  elsewhere.region = "EU";
  EXPECT_EQ(print(elsewhere, Mode::S), "lock@EU:shared:page:extracting:fs:7");
  EXPECT_EQ(print(name("a:b", {"50%", "*"}), Mode::IX), "lock:intent:a%3Ab:holding:50%25:%2A");
  EXPECT_EQ(key_of(page), "DEFAULT:page:fs:7");
  EXPECT_EQ(key_of(page, true), "DEFAULT:page:fs:7::extracting");
  EXPECT_EQ(print_path(name("a/b", {"c%d"})), "a%2Fb/c%25d");
}

TEST(Names, text_forms_and_keys_round_trip) {
  RandomNames random;
  for (int i = 0; i < 4'000; ++i) {
    const LockName made = random.next();
    ASSERT_TRUE(validate(made)) << print(made, Mode::X);
    for (const Mode mode : kAllModes) {
      const auto parsed = parse_lock_text(print(made, mode));
      ASSERT_TRUE(parsed) << print(made, mode);
      ASSERT_EQ(parsed->first, made);
      ASSERT_EQ(parsed->second, mode);
    }
    const auto scoped = parse_key(key_of(made, true));
    ASSERT_TRUE(scoped) << key_of(made, true);
    ASSERT_EQ(*scoped, made);
    LockName unscoped = made;
    unscoped.predicate.clear();
    ASSERT_EQ(parse_key(key_of(made)).value(), unscoped);
    LockName typed = made;
    typed.region = kDefaultRegion;
    typed.predicate = kDefaultPredicate;
    ASSERT_EQ(parse_path(print_path(typed)).value(), typed);
  }
}

TEST(Names, different_names_have_different_keys) {
  RandomNames random;
  std::set<std::string> keys;
  std::set<LockName> names;
  for (int i = 0; i < 4'000; ++i) {
    LockName made = random.next();
    keys.insert(key_of(made, true));
    names.insert(std::move(made));
  }
  EXPECT_EQ(keys.size(), names.size());
  EXPECT_NE(key_of(name("a", {"b:c"})), key_of(name("a", {"b", "c"})));
}

TEST(Names, the_predicate_is_no_part_of_what_conflicts_unless_scoped) {
  const LockName reader{.subject = "schema", .predicate = "reading"};
  const LockName writer{.subject = "schema", .predicate = "writing"};
  EXPECT_EQ(key_of(reader), key_of(writer));
  EXPECT_NE(key_of(reader, true), key_of(writer, true));
  EXPECT_NE(key_of(reader), key_of(reader, true));
}

TEST(Names, have_at_most_255_bytes_and_are_never_cut) {
  const std::size_t frame = kDefaultRegion.size() + kDefaultPredicate.size() + 2;
  EXPECT_TRUE(validate(name(std::string(kMaxNameBytes - frame, 'x'))));
  EXPECT_FALSE(validate(name(std::string(kMaxNameBytes - frame + 1, 'x'))));
  const std::string rest(kMaxNameBytes - frame - 2, 'x');
  EXPECT_TRUE(validate(name("s", {rest})));
  EXPECT_FALSE(validate(name("s", {rest + "x"})));
  EXPECT_FALSE(validate(name("s", {rest.substr(1), "a"})));
  // What counts is the name, not its escapes.
  EXPECT_TRUE(parse_path(print_path(name("s", {std::string(rest.size(), '%')}))));
  const auto error = validate(name(std::string(300, 'x'))).error();
  EXPECT_EQ(error.code, Code::bad_name);
  EXPECT_NE(error.message.find("255"), std::string::npos);
}

TEST(Names, have_no_empty_part) {
  EXPECT_FALSE(validate(name("")));
  EXPECT_FALSE(validate(name("a", {""})));
  EXPECT_FALSE(validate({.subject = "a", .predicate = ""}));
  EXPECT_FALSE(validate({.subject = "a", .region = ""}));
  for (const auto* text : {"", "/", "a/", "/a", "a//b"}) EXPECT_FALSE(parse_path(text)) << text;
  for (const auto* text : {"", "lock", "lock:", "lock:X", "lock:X:a", "lock:X::holding",
                           "lock:X:a:", "lock:X:a:p:", "lock:X:a:p::b", "lock@:X:a:p"}) {
    EXPECT_FALSE(parse_lock_text(text)) << text;
  }
  for (const auto* key : {"", ":", "R", "R:", ":a", "R:a:", "R::p", "R:a::", "::", "::p"}) {
    EXPECT_FALSE(parse_key(key)) << key;
  }
}

TEST(Names, are_judged_alike_wherever_a_byte_stands) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = byte >= 0x20 && byte <= 0x7E;
    for (std::size_t place = 0; place < 17; ++place) {
      std::string subject(17, '~');
      subject[place] = static_cast<char>(byte);
      EXPECT_EQ(validate({.subject = subject}).has_value(), plain) << byte << " at " << place;
    }
  }
}

TEST(Names, have_no_control_characters_however_they_are_written) {
  for (unsigned char c = 0; c < 0x20; ++c) {
    EXPECT_FALSE(validate(name(std::string("a") + static_cast<char>(c))));
  }
  EXPECT_FALSE(validate(name("a\x7F")));
  EXPECT_FALSE(validate(name("a\xC2\x80")));  // U+0080
  EXPECT_FALSE(validate(name("a\xC2\x9F")));
  EXPECT_TRUE(validate(name("a\xC2\xA0")));
  EXPECT_FALSE(parse_path("a%00"));
  EXPECT_FALSE(parse_path("a%0a"));
  EXPECT_FALSE(parse_lock_text("lock:X:a%00b:holding"));
  EXPECT_FALSE(parse_lock_text("lock@%1F:X:a:holding"));
}

TEST(Names, are_valid_utf8) {
  for (const auto* good : {"é", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(validate(name(good))) << good;
    EXPECT_TRUE(is_valid_utf8_text(good));
  }
  const std::vector<std::string> broken = {
      "\x80",  // a continuation alone
      "\xC3",
      "\xE2\x82",
      "\xF0\x9F\x99",  // cut short
      "\xC3(",         // not continued
      "\xC0\xAF",
      "\xC1\xBF",  // overlong: '/' in two bytes
      "\xE0\x9F\xBF",
      "\xF0\x8F\xBF\xBF",  //
      "\xED\xA0\x80",
      "\xED\xBF\xBF",  // surrogates
      "\xF4\x90\x80\x80",
      "\xF5\x80\x80\x80",
      "\xFF",  // beyond the last code point
  };
  for (const std::string& text : broken) {
    EXPECT_FALSE(validate(name(text)));
    EXPECT_FALSE(validate(name("a", {"b" + text + "c"})));
    EXPECT_FALSE(is_valid_utf8_text(text));
  }
  EXPECT_FALSE(parse_path("%C3"));
  EXPECT_TRUE(parse_path("%C3%A9"));
}

TEST(Names, text_may_have_lines_and_tabs_but_no_nul) {
  EXPECT_TRUE(is_valid_utf8_text(""));
  EXPECT_TRUE(is_valid_utf8_text("a\n\tb\x7F"));
  EXPECT_FALSE(is_valid_utf8_text(std::string("a\0b", 3)));
}

TEST(Names, escapes_are_two_hexadecimal_digits) {
  EXPECT_EQ(parse_path("a%3ab").value().subject, "a:b");
  EXPECT_EQ(parse_path("a%3Ab").value().subject, "a:b");
  for (const auto* text : {"a%", "a%3", "a%g0", "a%0g", "%%", "a% 3", "a%-1"}) {
    EXPECT_FALSE(parse_path(text)) << text;
    EXPECT_FALSE(parse_key("R:" + std::string(text))) << text;
    EXPECT_FALSE(parse_lock_text("lock:X:a:" + std::string(text))) << text;
  }
}

TEST(Names, the_text_form_says_what_it_misses) {
  EXPECT_NE(parse_lock_text("lok:X:a:b").error().message.find("lock:"), std::string::npos);
  EXPECT_NE(parse_lock_text("lock:Y:a:b").error().message.find("'Y'"), std::string::npos);
  EXPECT_EQ(parse_lock_text("lock:Y:a:b").error().code, Code::bad_name);
}

}  // namespace
}  // namespace baton
