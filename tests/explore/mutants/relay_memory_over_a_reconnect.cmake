# A relay keeps what it remembers when the database comes back: xids may come back too.
set(EXPLORES relay)
set(FILE tests/explore/relay_world.cc)
set(REPLACE_1 [[for (Relay& relay : state.relays) relay = {};]])
set(WITH_1 [[for (Relay& relay : state.relays) relay.sent.clear();]])
