// What the API server sends, as the objects of baton-gateway.

#include "apps/gateway/kubernetes_record.h"

#include <gtest/gtest.h>

namespace baton::gateway {
namespace {

std::string item(const std::string& name, const std::string& target) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":"7"},"spec":{"fingerprint":"f","remediationRequest":"r","target":")" +
         target + R"("}})";
}

std::string list(const std::string& items) {
  return R"({"metadata":{"continue":"more"},"items":[)" + items + "]}";
}

template <typename Object>
void one_bad_object_leaves_the_others() {
  const auto page = parse_page<Object>(list(item("a", "Node/a") + "," + item("odd", "abc") +
                                            ",17," + item("b", "shop/Deployment/b")));
  ASSERT_TRUE(page);
  ASSERT_EQ(page->records.size(), 2U);
  EXPECT_EQ(page->records[0].object.name, "a");
  EXPECT_EQ(page->records[1].object.target, (Target{"shop", "Deployment", "b"}));
  EXPECT_EQ(page->next, "more");
}

TEST(KubernetesRecord, one_bad_object_leaves_the_others) {
  one_bad_object_leaves_the_others<RemediationRequest>();
  one_bad_object_leaves_the_others<WorkflowExecution>();
}

TEST(KubernetesRecord, what_is_nested_without_end_is_none_of_ours) {
  const std::string deep = std::string(120'000, '[') + std::string(120'000, ']');
  EXPECT_FALSE(parse_record<RemediationRequest>(deep));
  EXPECT_FALSE(
      parse_record<RemediationRequest>(R"({"metadata":{"name":"a"},"spec":)" + deep + "}"));
  EXPECT_FALSE(parse_page<WorkflowExecution>(list(item("a", "Node/a") + "," + deep)));
}

TEST(KubernetesRecord, what_is_no_list_at_all_is_none_of_ours) {
  EXPECT_FALSE(parse_page<RemediationRequest>("{}"));
  EXPECT_FALSE(parse_page<RemediationRequest>("no json"));
  EXPECT_FALSE(parse_page<RemediationRequest>(R"({"items":{}})"));
}

// What has no lock of its own would be trouble in every round of the orchestrator.
TEST(KubernetesRecord, a_target_has_all_its_parts) {
  EXPECT_EQ(parse_target("Node/worker-1"), (Target{"", "Node", "worker-1"}));
  for (const char* text : {"", "abc", "/", "Node/", "/worker-1", "//", "/Deployment/cart",
                           "shop//cart", "shop/Deployment/", "shop/Deployment/cart/more"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

}  // namespace
}  // namespace baton::gateway
