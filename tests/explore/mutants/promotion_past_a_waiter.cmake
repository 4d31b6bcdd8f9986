# A waiter is promoted although an earlier one, whose mode excludes it, still waits.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[for (std::size_t i = 0; i < index; ++i) {]])
set(WITH_1 [[for (std::size_t i = index; i < index; ++i) {]])
