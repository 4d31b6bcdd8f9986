// The API server goes away under load.

#include "fault.h"

namespace baton::test {
namespace {

TEST_F(Fault, an_api_server_that_restarts_under_load_breaks_no_promise) {
  survive(3s, 2, [&](int round) {
    round == 0 ? kube->crash() : kube->stop();
    kube->start();
  });
}

}  // namespace
}  // namespace baton::test
