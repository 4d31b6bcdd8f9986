#pragma once

// The promises of the client are shown once with wake-ups and once with every wake-up dropped,
// because neither safety nor progress may depend on them.

#include "conformance/replicas.h"

namespace baton::test {

inline const AcquireOptions kPatient{.ttl = 3s, .wait = 60s};

inline std::string wakeups_name(const ::testing::TestParamInfo<bool>& dropped) {
  return dropped.param ? "dropped" : "delivered";
}

class Client : public Replicas, public ::testing::WithParamInterface<bool> {
 protected:
  Client() : Replicas(fresh_store) {}

  Replica replica(const std::string& owner) { return Replicas::replica(owner, GetParam()); }
};

}  // namespace baton::test
