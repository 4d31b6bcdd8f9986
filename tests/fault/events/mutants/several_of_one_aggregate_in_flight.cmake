# Publishes each event as if it were the only one of its aggregate.
set(FILE src/relay/look.cc)
set(REPLACE_1 [[void Look::enqueue(Row row, std::uint64_t look) {]])
set(WITH_1 [[void Look::enqueue(Row row, std::uint64_t look) {
  row.aggregate += " " + std::to_string(row.position);]])
