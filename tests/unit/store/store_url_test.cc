// What the messages of servers may repeat of a URL.

#include "store/common/url.h"

#include <gtest/gtest.h>

namespace baton::store {
namespace {

TEST(WithoutSecret, hides_a_password_wherever_it_is) {
  EXPECT_EQ(without_secret("no user app with horse-battery, horse-batterys", "horse-battery"),
            "no user app with ***, ***s");
  EXPECT_EQ(without_secret("horse-battery", "horse-battery"), "***");
}

TEST(WithoutSecret, does_not_destroy_words_that_a_short_password_is_a_part_of) {
  const std::string message = "database \"data\" is a replica: data=data, app:data@db";
  EXPECT_EQ(without_secret(message, "data"), "database \"***\" is a replica: ***=***, app:***@db");
  EXPECT_EQ(without_secret(message, "a"), message);
  EXPECT_EQ(without_secret(message, "is"), message);
}

TEST(WithoutSecret, hides_the_shortest_password_where_a_url_has_it) {
  EXPECT_EQ(without_secret("a user at postgres://a:a@a/a?password=a", "a"),
            "a user at postgres://a:***@a/a?password=***");
  EXPECT_EQ(without_secret("a message", ""), "a message");
  EXPECT_EQ(without_secret(":*", "*"), ":***");
}

}  // namespace
}  // namespace baton::store
