# Reads behind the last position it has seen: skips transactions that commit late.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[  return Read{.known = known_};]])
set(WITH_1 [[  return Read{.behind = known_.xmax == 0 ? static_cast<Position>(known_.xmin) : 0};]])
set(REPLACE_2 [[    known_ = now;]])
set(WITH_2 [[    const auto before = read.behind;
    known_ = {.xmin = static_cast<Xid>(rows.empty() ? before : rows.back().position), .xmax = 0};]])
