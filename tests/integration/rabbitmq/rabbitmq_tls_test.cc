#include "integration/rabbitmq/rabbitmq_support.h"

namespace baton::test {
namespace {

Result<std::vector<BrokerFinding>> check(const std::string& url) {
  return Broker::open(url).value()->check({}, soon());
}

TEST(RabbitmqTls, a_server_with_a_certificate_of_the_authority_is_believed) {
  const auto found = check(server().tls_url("ca=" + files().file("ca.pem")));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
}

TEST(RabbitmqTls, anybody_else_is_not) {
  const auto found = check(server().tls_url("ca=" + files().file("stranger.pem")));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("certificate is refused"), std::string::npos)
      << found.error().message;
  EXPECT_FALSE(check(server().tls_url())) << "the system does not know the authority";
}

TEST(RabbitmqTls, who_checks_nobody_is_told_so) {
  const auto found = check(server().tls_url("verify=no"));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().code, "tls-unverified");
}

TEST(RabbitmqTls, a_port_without_it_is_an_error_and_not_a_hang) {
  const std::string plain = "rabbitmqs://guest:guest@localhost:" + std::to_string(server().port());
  EXPECT_FALSE(check(plain + "?verify=no"));
  const std::string tls = "rabbitmq://guest:guest@localhost:" + std::to_string(server().tls_port());
  EXPECT_FALSE(check(tls));
}

}  // namespace
}  // namespace baton::test
