#pragma once

#include "store/postgres/schema.h"

namespace baton::store::postgres_advisory {

// The schema baton_advisory.
extern const postgres::SchemaPlan kPlan;

}  // namespace baton::store::postgres_advisory
