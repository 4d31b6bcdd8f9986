# Saves a look as the checkpoint before its rows are marked.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[if (being_read || look.unsettled != settles[look.number]) break;]])
set(WITH_1 [[if (being_read) break;]])
