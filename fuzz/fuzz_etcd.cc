// What etcd, or something in its place, answers.

#include "fuzz.h"
#include "store/etcd/record.h"
#include "store/etcd/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton::store::etcd;
  const std::string_view text = baton::fuzz::text_of(data, size);
  (void)wire::txn_answer(text);
  (void)wire::lease_answer(text);
  (void)wire::token_answer(text);
  (void)wire::watch_event(text);
  (void)wire::problem(text);
  (void)wire::field(text, "version");
  (void)wire::member_count(text);
  if (const auto message = wire::message(text)) {
    const auto again = wire::message(wire::message(*message));
    baton::fuzz::promise(again && again->grants == message->grants, "a message survives writing");
  }
  if (const auto range = wire::range_answer(text)) {
    const auto record = record_of(Layout("baton"), "session", range->found);
    (void)record_sent(std::string(text), 7, *record);
  }
  return 0;
}
