#include <gtest/gtest.h>

#include "baton/locks.h"

namespace baton {
namespace {

TEST(redact_url, hides_the_password_and_leaves_the_rest) {
  EXPECT_EQ(redact_url("postgres://app:secret@db:5432/locks"), "postgres://app:***@db:5432/locks");
  EXPECT_EQ(redact_url("redis://:secret@db/0"), "redis://:***@db/0");
  EXPECT_EQ(redact_url("etcd://u:secret@a:2379,b:2379/p"), "etcd://u:***@a:2379,b:2379/p");
  EXPECT_EQ(redact_url("postgres://db/locks?user=u&password=secret&sslmode=require"),
            "postgres://db/locks?user=u&password=***&sslmode=require");
  EXPECT_EQ(redact_url("postgres://db/locks?sslpassword=secret"),
            "postgres://db/locks?sslpassword=***");
}

TEST(redact_url, leaves_what_has_no_password) {
  for (const auto* url : {"sqlite:/var/lib/a@b/locks.db", "memory:", "postgres://app@db:5432/locks",
                          "postgres://db:5432/locks", "redis+unix:///run/redis.sock", ""}) {
    EXPECT_EQ(redact_url(url), url);
  }
}

// Who forgot to escape it does not want to see it in a log all the same.
TEST(redact_url, hides_a_password_with_any_character_in_it) {
  for (const std::string password :
       {"p/w", "/", "p@w", "p/w@x", "p?w", "p#w", "p:w", "p w/x", "p&w"}) {
    EXPECT_EQ(redact_url("postgres://app:" + password + "@db/locks"), "postgres://app:***@db/locks")
        << password;
  }
  for (const auto* url :
       {"postgres://app:secret?password=sec/ret@db/locks",
        "postgres://db:5432/locks?password=sec@ret", "postgres://db/locks?password=sec@ret"}) {
    const auto shown = redact_url(url);
    EXPECT_EQ(shown.find("sec"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("ret"), std::string::npos) << shown;
  }
}

}  // namespace
}  // namespace baton
