# The frontier is the lowest bound of those who are new, and forgets those who were known.
set(EXPLORES frontier)
set(FILE src/eventlog/frontier.cc)
set(REPLACE_1 [[known != bounds_.end() ? known->second : last_drawn_]])
set(WITH_1 [[last_drawn_]])
