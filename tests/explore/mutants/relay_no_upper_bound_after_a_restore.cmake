# Rows of a dump keep their xids and are read without an upper bound.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[return {.from = {}, .restamp = true};]])
set(WITH_1 [[return {.from = {}, .restamp = false};]])
set(REPLACE_2 [[return !known.shows(xid) && snapshot.shows(xid) && position > behind;]])
set(WITH_2 [[return !known.shows(xid) && (!now || snapshot.shows(xid)) && position > behind;]])
