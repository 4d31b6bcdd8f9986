#include "store/postgres/former_grants.h"

#include <gtest/gtest.h>

namespace baton::store::postgres {
namespace {

Request acquire(const std::string& key) {
  Request request;
  request.verb = Verb::acquire;
  request.targets = {{key, Mode::X}};
  request.predicate = "building";
  request.owner = "node-1";
  request.channel = "process-1";
  request.metadata = {{"purpose", "a test"}};
  request.ttl = Millis(30'000);
  return request;
}

std::string name_of(int i) { return "DEFAULT:order:" + std::to_string(i); }

TEST(FormerGrants, a_name_that_was_never_granted_is_not_guessed) {
  FormerGrants former;
  EXPECT_FALSE(former.guess(acquire("DEFAULT:a")));
  former.granted(acquire("DEFAULT:a"), 7, false);
  EXPECT_FALSE(former.guess(acquire("DEFAULT:b")));
  EXPECT_EQ(former.guess(acquire("DEFAULT:a")), 7);
}

// Whatever a row says of its holder: a guess that left one out would let a grant have another's.
TEST(FormerGrants, a_grant_on_other_terms_is_not_guessed) {
  FormerGrants former;
  const Request usual = acquire("DEFAULT:a");
  former.granted(usual, 7, false);
  std::vector<Request> others(7, usual);
  others[0].targets[0].mode = Mode::S;
  others[1].ttl += Millis(1);
  others[2].at_least_for = Millis(1);
  others[3].predicate = "reading";
  others[4].owner = "node-2";
  others[5].channel = "process-2";
  others[6].metadata["purpose"] = "another";
  for (const Request& other : others) EXPECT_FALSE(former.guess(other));
  EXPECT_EQ(former.guess(usual), 7);
}

TEST(FormerGrants, terms_that_were_given_up_are_not_believed_of_those_that_took_their_place) {
  FormerGrants former;
  Request request = acquire("DEFAULT:a");
  former.granted(request, 7, false);
  for (int i = 1; i <= 40; ++i) {
    Request other = acquire(name_of(i));
    other.ttl = Millis(1000 * i);
    former.granted(other, 100 + static_cast<Token>(i), false);
    request.ttl = other.ttl;
    EXPECT_FALSE(former.guess(request)) << i;
  }
  EXPECT_FALSE(former.guess(acquire("DEFAULT:a")));
}

TEST(FormerGrants, a_thousand_names_in_use_do_not_push_each_other_out) {
  FormerGrants former;
  for (int i = 0; i < 1000; ++i) former.granted(acquire(name_of(i)), static_cast<Token>(i), false);
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    found += former.guess(acquire(name_of(i))) == static_cast<Token>(i) ? 1 : 0;
  }
  EXPECT_GT(found, 950);
}

// Of two replicas that take turns, each would be wrong at every turn.
TEST(FormerGrants, a_name_that_others_hold_in_between_is_guessed_less_and_less_often) {
  FormerGrants former;
  const Request request = acquire("DEFAULT:a");
  int guesses = 0;
  for (Token token = 1; token <= 1000; ++token) {
    if (former.guess(request)) {
      ++guesses;
      former.was_wrong(request);
    }
    former.granted(request, token, false);
  }
  EXPECT_LT(guesses, 20);
  EXPECT_GT(guesses, 1);
}

TEST(FormerGrants, a_name_that_is_ours_alone_again_is_guessed_every_time) {
  FormerGrants former;
  const Request request = acquire("DEFAULT:a");
  former.granted(request, 1, false);
  former.was_wrong(request);
  Token token = 1;
  int guesses = 0;
  for (int i = 0; i < 100; ++i) {
    const bool guessed = former.guess(request) == token;
    guesses += guessed ? 1 : 0;
    former.granted(request, ++token, guessed);
  }
  EXPECT_EQ(guesses, 99);
}

}  // namespace
}  // namespace baton::store::postgres
