#include "core/document.h"
#include "json/json.h"

#include <gtest/gtest.h>

#include <random>

namespace baton::core {
namespace {

// States in which every field has been seen set and unset.
class RandomStates {
 public:
  NameState next() {
    NameState state;
    for (std::uint64_t i = below(4); i > 0; --i) state.holders.push_back(holder());
    for (std::uint64_t i = below(4); i > 0; --i) state.waiters.push_back(waiter());
    for (std::uint64_t i = below(3); i > 0; --i) {
      state.tombstones.push_back({grant(), moment()});
    }
    if (below(2) == 0) state.note = {time(), text()};
    return state;
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  GrantId grant() { return {random_(), random_()}; }
  std::int64_t time() { return static_cast<std::int64_t>(random_() >> below(63) >> 1); }
  StoreTime moment() { return StoreTime(time() >> 3); }  // later ones are damage
  std::string text() {
    static const std::vector<std::string> pieces = {
        "", "a", "\"", "\\", "\n", "}", "é", "🙂", "{\"holders\":[]}"};
    return pieces[below(pieces.size())] + pieces[below(pieces.size())];
  }

  void fill(Claimant& who) {
    who.grant = grant();
    who.mode = kAllModes[below(kAllModes.size())];
    who.ttl = Millis(1 + time() % kMaxTtl.count());
    if (below(2) == 0) who.at_least_for = Millis(1 + time() % kMaxTtl.count());
    if (below(3) == 0) who.if_ordinal_below = time();
    if (below(3) == 0) who.change.ordinal = time();
    if (below(3) == 0) who.change.text = text();
    who.predicate = text();
    who.owner = text();
    who.channel = text();
    for (std::uint64_t i = below(3); i > 0; --i) who.metadata[text()] = text();
  }

  Holder holder() {
    Holder made;
    fill(made);
    made.token = random_();
    made.state = static_cast<HolderState>(below(3));
    made.since = moment();
    made.expires = moment();
    made.revoked = below(3) == 0;
    if (made.revoked) made.reason = text();
    return made;
  }

  Waiter waiter() {
    Waiter made;
    fill(made);
    made.turn = random_();
    made.stale = moment();
    made.claim_within = Millis(time() % kMaxWait.count());
    made.alone = below(2) == 0;
    made.converting = below(2) == 0;
    return made;
  }

  std::mt19937_64 random_{11};
};

void expect_same(const NameState& a, const NameState& b) {
  EXPECT_EQ(a.holders, b.holders);
  EXPECT_EQ(a.waiters, b.waiters);
  EXPECT_EQ(a.tombstones, b.tombstones);
  EXPECT_EQ(a.note, b.note);
}

TEST(Document, every_state_survives_it) {
  RandomStates random;
  for (int i = 0; i < 1000; ++i) {
    const NameState state = random.next();
    const auto back = from_document(to_document(state));
    ASSERT_TRUE(back) << back.error().message;
    expect_same(state, *back);
    EXPECT_FALSE(back->dirty);
  }
}

TEST(Document, every_character_survives_it) {
  NameState state;
  for (char c = 1; c != '\x80' && c > 0; ++c) state.note.text += c;
  state.note.text += "\u00e9\u20ac\U0001F512";
  Holder holder;
  holder.metadata = {{state.note.text, state.note.text}, {"", "plain"}};
  state.holders = {holder, holder};
  const auto back = from_document(to_document(state));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->note.text, state.note.text);
  EXPECT_EQ(back->holders, state.holders);
}

TEST(Document, an_empty_state_is_an_empty_object) {
  EXPECT_EQ(to_document({}), "{}");
  EXPECT_TRUE(from_document("{}").value().empty());
}

TEST(Document, what_is_cut_short_is_refused) {
  RandomStates random;
  for (int i = 0; i < 10; ++i) {
    const std::string whole = to_document(random.next());
    for (std::size_t length = 0; length < whole.size(); length += 3) {
      ASSERT_FALSE(from_document(whole.substr(0, length))) << whole.substr(0, length);
    }
  }
}

// A changed digit cannot be told from another number. Everything else can, and must be: a document
// is either one that to_document writes, or refused.
TEST(Document, a_damaged_byte_is_refused_unless_the_result_is_a_document_again) {
  constexpr std::string_view kDamage = "09-x\",.\x80";
  RandomStates random;
  for (std::size_t i = 0; i < kDamage.size(); ++i) {
    const std::string whole = to_document(random.next());
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = kDamage[(at + i) % kDamage.size()];
      const auto state = from_document(damaged);
      if (!state) continue;
      ASSERT_TRUE(nlohmann::json::parse(to_document(*state)) == nlohmann::json::parse(damaged))
          << damaged;
    }
  }
}

TEST(Document, what_is_no_document_is_refused) {
  const std::string holder =
      R"({"expires":9,"grant":"00000000000000010000000000000002","mode":"X","since":1,)"
      R"("state":"held","token":3,"ttl":5})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = holder;
    return R"({"holders":[)" + changed.replace(changed.find(from), from.size(), to) + "]}";
  };
  ASSERT_TRUE(from_document(with("X", "X")));
  for (const std::string& text :
       std::vector<std::string>{"",
                                "null",
                                "[]",
                                "0",
                                "true",
                                "\"\"",
                                "{}{}",
                                R"({"holder":[]})",
                                R"({"holders":null})",
                                R"({"holders":{}})",
                                R"({"holders":[null]})",
                                R"({"holders":[{}]})",
                                R"({"note":null})",
                                R"({"holders":[]})",
                                R"({"note":{"ordinal":0,"text":""}})",
                                R"({"note":{"ordinal":1}})",
                                R"({"note":{"ordinal":1,"text":"","more":1}})",
                                R"({"tombstones":[{"grant":"1","until":1}]})",
                                with("\"X\"", "\"Y\""),
                                with("\"X\"", "\"exclusive\""),
                                with("\"held\"", "\"gone\""),
                                with("\"expires\":9", "\"expires\":9223372036854775807"),
                                with("\"ttl\":5", "\"ttl\":9223372036854775807"),
                                with("\"ttl\"", "\"tll\""),
                                with("\"token\":3", "\"token\":-3"),
                                with("\"token\":3", "\"token\":3.5"),
                                with("\"token\":3", "\"token\":\"3\""),
                                with("\"expires\":9", "\"expires\":true"),
                                with("\"expires\":9", "\"expires\":99999999999999999999"),
                                with("\"expires\":9", "\"expires\":18446744073709551615"),
                                with("{\"expires\"", "{\"revokee\":\"\",\"expires\""),
                                with("\"ttl\"", "\"at_least_for\":0,\"ttl\""),
                                with("\"mode\"", "\"metadata\":{},\"mode\""),
                                with("\"since\"", "\"owner\":\"\",\"since\"")}) {
    const auto state = from_document(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, Code::bad_store);
  }
}

}  // namespace
}  // namespace baton::core
