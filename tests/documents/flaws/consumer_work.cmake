# Acknowledges a batch before its transaction.
set(FILE src/inbox/consumer_work.cc)
set(REPLACE_1 [[#include "inbox/consumer_loop.h"]])
set(WITH_1 [[#include "inbox/consumer_loop.h"

#include "documents/flaw.h"]])
set(REPLACE_2 [[  AttemptResult result;
  bool overran = false;
  const auto put_back]])
set(WITH_2 [[  if (baton::test::flawed("ack_before_commit")) {
    for (const Incoming& one : batch) acknowledge(one.delivery.tag);
    settle();
  }
  AttemptResult result;
  bool overran = false;
  const auto put_back]])
set(REPLACE_3 [[  acknowledge(one.delivery.tag);
  switch (fate) {]])
set(WITH_3 [[  if (!baton::test::flawed("ack_before_commit")) acknowledge(one.delivery.tag);
  switch (fate) {]])
