// What only a store with a server has to survive.

#include "fault.h"

namespace baton::test {
namespace {

TEST_F(Fault, a_server_that_restarts_under_load_breaks_no_promise) {
  survive(2s, 3, [&](int round) {
    server->restart(round == 0 ? PostgresServer::StopMode::fast
                               : PostgresServer::StopMode::immediate);
  });
}

}  // namespace
}  // namespace baton::test
