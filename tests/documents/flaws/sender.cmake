# A message is sent again for a key that was used before.
set(FILE apps/documents/notification/sender.cc)
set(REPLACE_1 [[#include "core/sha256.h"]])
set(WITH_1 [[#include "core/sha256.h"

#include "documents/flaw.h"]])
set(REPLACE_2 [["/" + core::sha256(notice.idempotency_key) + ".json";]])
set(WITH_2 [["/" +
                             core::sha256(notice.idempotency_key +
                                          (baton::test::flawed("sender_without_keys")
                                               ? std::to_string(getpid())
                                               : "")) +
                             ".json";]])
