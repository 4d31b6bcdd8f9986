# A request for two names looks only at the first.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[  Obstacle obstacle;
  for (std::size_t i = 0; i < step.states.size(); ++i) {
    const Waiter* own]])
set(WITH_1 [[  Obstacle obstacle;
  for (std::size_t i = 0; i < 1; ++i) {
    const Waiter* own]])
