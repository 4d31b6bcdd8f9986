# Later pages of a look are not bound to the snapshot of its first page.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[return !known.shows(xid) && snapshot.shows(xid) && position > behind;]])
set(WITH_1 [[return !known.shows(xid) && (now || snapshot.shows(xid)) && position > behind;]])
