# A sequence that nobody has used yet counts as one that has drawn its first value.
set(EXPLORES frontier)
set(FILE src/eventlog/frontier.cc)
set(REPLACE_1 [[look.last_value - (look.is_called ? 0 : 1)]])
set(WITH_1 [[look.last_value]])
