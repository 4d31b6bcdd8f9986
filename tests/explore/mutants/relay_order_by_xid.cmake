# Publishes in the order of xids: a transaction has its xid before it waits for its aggregate.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[{ return a.position < b.position; });]])
set(WITH_1 [[{
    return a.xid < b.xid || (a.xid == b.xid && a.position < b.position);
  });]])
