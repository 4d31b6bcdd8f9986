#pragma once

// What the tests of the Kubernetes store share: one real API server a program, a namespace a test.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "conformance/harness.h"
#include "store/kubernetes/kubernetes_store.h"
#include "support/kube_server.h"
#include "support/wait.h"

namespace baton::test {

using namespace std::chrono_literals;

class KubernetesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server = std::make_unique<KubeServer>(); }
  static void TearDownTestSuite() { server.reset(); }

  static inline std::unique_ptr<KubeServer> server;
  std::string space = server->create_namespace();
  std::shared_ptr<ManualTime> standing = std::make_shared<ManualTime>();
  const std::string kName = "DEFAULT:job:1";

  // Its time stands still unless the options say otherwise, so that nothing expires on a slow
  // machine.
  std::unique_ptr<LockStore> open(store::KubernetesOptions options = {},
                                  const std::string& user = "admin") {
    if (!options.now) options.now = [time = standing] { return time->now(); };
    if (options.url.empty()) options.url = server->store_url(user, space);
    return store::open_kubernetes_store_with(options, soon()).value();
  }
  // A client whose clock only the test moves.
  std::unique_ptr<LockStore> open_at(const std::shared_ptr<ManualTime>& time) {
    return open({.now = [time] { return time->now(); }});
  }

  static Reply ask(LockStore& store, const Request& request) {
    auto replies = store.apply({&request, 1}, soon());
    EXPECT_TRUE(replies) << replies.error().message;
    return replies ? replies->at(0) : Reply{};
  }
  static Outcome outcome(LockStore& store, const Request& request) {
    return ask(store, request).outcome;
  }
  static Error failure(LockStore& store, const Request& request) {
    auto replies = store.apply({&request, 1}, soon());
    EXPECT_FALSE(replies) << describe(replies->at(0));
    return replies ? Error{} : replies.error();
  }

  [[nodiscard]] std::string leases() const {
    return "/apis/coordination.k8s.io/v1/namespaces/" + space + "/leases";
  }
};

}  // namespace baton::test
