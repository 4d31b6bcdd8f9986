#include <gtest/gtest.h>

#include "core/percent.h"
#include "http/router.h"
#include "http/target.h"

namespace baton::http {
namespace {

using Parts = std::vector<std::string>;

TEST(HttpTarget, a_path_is_taken_apart_before_it_is_decoded) {
  const auto target = parse_target("/a%2Fb/c%20d?x=1%262&y=a+b&flag");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a%2Fb/c%20d");
  EXPECT_EQ(target->segments, (Parts{"a/b", "c d"}));
  EXPECT_EQ(target->query, (Pairs{{"x", "1&2"}, {"y", "a b"}, {"flag", ""}}));
}

TEST(HttpTarget, the_absolute_form_of_a_proxy_is_understood) {
  const auto target = parse_target("http://gateway:8080/signals?x=y");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/signals");
}

TEST(HttpTarget, what_is_no_path_is_refused) {
  std::string deep;
  for (std::size_t i = 0; i <= kMaxSegments; ++i) deep += "/a";
  std::string many = "/?";
  for (std::size_t i = 0; i <= kMaxQueryPairs; ++i) many += "a=b&";
  for (const std::string& text :
       {std::string(), std::string("*"), std::string("a/b"), std::string("host:80"),
        std::string("http://host"), std::string("/%"), std::string("/%4"), std::string("/%zz"),
        std::string("/%00"), std::string("/%0A"), std::string("/%ff"), std::string("/?x=%0d"),
        std::string("/a#b"), deep, many}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

TEST(HttpTarget, an_encoded_part_decodes_to_itself) {
  const std::string part = "a/b c%d?e#ä";
  const auto target = parse_target("/" + core::percent_encoded(part));
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, Parts{part});
}

class HttpRouter : public ::testing::Test {
 protected:
  HttpRouter() {
    const auto answer = [](const Request&) { return Response{}; };
    router_.add("GET", "/", answer);
    router_.add("GET", "/requests/latest", answer);
    router_.add("GET", "/requests/{name}", answer);
    router_.add("POST", "/requests/{name}", answer);
  }
  Router::Match find(std::string_view method, std::string_view path) {
    return router_.find(method, *parse_target(path));
  }
  Router router_;
};

TEST_F(HttpRouter, finds_the_first_route_that_matches) {
  EXPECT_EQ(find("GET", "/").route, "/");
  EXPECT_EQ(find("GET", "/requests/latest").route, "/requests/latest");
  const auto match = find("GET", "/requests/a%2Fb");
  EXPECT_EQ(match.route, "/requests/{name}");
  EXPECT_EQ(match.parameters, (Pairs{{"name", "a/b"}}));
}

TEST_F(HttpRouter, head_is_answered_by_get) { EXPECT_NE(find("HEAD", "/").handler, nullptr); }

TEST_F(HttpRouter, says_which_methods_a_path_takes) {
  EXPECT_EQ(find("DELETE", "/requests/a").allowed, "GET, HEAD, POST");
  EXPECT_EQ(find("GET", "/requests").allowed, "");
  EXPECT_EQ(find("GET", "/requests/").handler, nullptr) << "an empty part names nothing";
}

}  // namespace
}  // namespace baton::http
