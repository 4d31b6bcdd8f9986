#include <hiredis/hiredis.h>

#include "baton/fence.h"
#include "baton/lease.h"

void redis_fence_example(redisContext* redis, const baton::Lease& lease, const char* text) {
#include "docs/stores/redis.md.1.inc"
}
