# A client with a slow clock trusts its lease for all of the TTL.
set(FILE src/core/trust.h)
set(REBUILD tests/explore/client_side.cc)
set(REPLACE_1 [[return sent + ttl - margin(ttl);]])
set(WITH_1 [[return sent + ttl;]])
