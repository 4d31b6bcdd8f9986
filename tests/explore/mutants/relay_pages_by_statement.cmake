# Each page of a look takes the snapshot of its own statement as that of the look.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[const Snapshot now = first ? page.now : *read.now;]])
set(WITH_1 [[const Snapshot now = page.now;]])
