# A fence takes its rows in the order in which the lease names them.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[  std::sort(sorted.begin(), sorted.end(), [](const FenceToken& a, const FenceToken& b) {
    return a.key != b.key ? a.key < b.key : a.token > b.token;
  });
]])
set(WITH_1 [[]])
