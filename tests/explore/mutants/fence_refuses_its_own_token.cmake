# The second transaction of a holder is refused because of its first.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[newer.token > older.token]])
set(WITH_1 [[newer.token >= older.token]])
