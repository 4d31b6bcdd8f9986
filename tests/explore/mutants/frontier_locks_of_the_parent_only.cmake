# A transaction that wrote straight into a leaf is not listed.
set(EXPLORES frontier)
set(FILE tests/explore/eventlog_world.cc)
set(REPLACE_1 [[const bool of_leaf = true;]])
set(WITH_1 [[const bool of_leaf = false;]])
