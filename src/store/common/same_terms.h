#pragma once

#include "baton/store.h"

namespace baton::store {

// Whether two plain acquires of one name each differ in nothing but name and grant, as far as a
// free name is concerned. Those of one process mostly do.
[[nodiscard]] inline bool same_terms(const Request& a, const Request& b) {
  return a.targets[0].mode == b.targets[0].mode && a.ttl == b.ttl &&
         a.at_least_for == b.at_least_for && a.schema_version == b.schema_version &&
         a.predicate == b.predicate && a.owner == b.owner && a.channel == b.channel &&
         a.metadata == b.metadata;
}

}  // namespace baton::store
