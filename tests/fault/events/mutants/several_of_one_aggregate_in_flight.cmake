# Publishes each event as if it were the only one of its aggregate.
set(FILE src/relay/look.cc)
set(REPLACE_1 [[void Look::enqueue(const Row& row, std::uint64_t look) {]])
set(WITH_1 [[void Look::enqueue(const Row& given, std::uint64_t look) {
  Row row = given;
  row.aggregate += " " + std::to_string(row.position);]])
