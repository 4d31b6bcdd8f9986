# Acknowledges a batch before its transaction.
set(FILE src/inbox/consumer_work.cc)
set(REPLACE_1 [[  AttemptResult result;
  bool overran = false;
  const auto put_back]])
set(WITH_1 [[  for (const Incoming& one : batch) acknowledge(one.delivery.tag);
  settle();
  AttemptResult result;
  bool overran = false;
  const auto put_back]])
set(REPLACE_2 [[  acknowledge(one.delivery.tag);
  switch (fate) {]])
set(WITH_2 [[  switch (fate) {]])
