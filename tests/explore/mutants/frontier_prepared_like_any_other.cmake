# A prepared transaction that is seen first has begun since the last look.
set(EXPLORES frontier)
set(FILE src/eventlog/frontier.cc)
set(REPLACE_1 [[known == bounds_.end() && holder.prepared]])
set(WITH_1 [[false]])
