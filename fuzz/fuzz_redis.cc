// What Redis, or something in its place, answers: replies of the protocol, what the scripts pack,
// and stored values.

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <hiredis/hiredis.h>

#include "fuzz.h"
#include "store/redis/answer.h"
#include "store/redis/batch.h"
#include "store/redis/connection.h"

namespace baton::fuzz {
namespace {

// Reading may throw this and nothing else.
void try_read(const std::function<void()>& read) {
  try {
    read();
  } catch (const std::runtime_error&) {
  }
}

void read_all(std::string_view text) {
  Request request;
  request.targets = {{"DEFAULT:job", Mode::X}};
  for (const std::size_t count : {1U, 3U}) {
    try_read([&] {
      const auto answer =
          store::redis::read_answer(text, std::vector<const Request*>(count, &request));
      promise(answer.late || answer.replies.size() == count, "a reply a request");
    });
  }
  try_read([&] { (void)store::redis::read_value(text); });
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::read_all(text);
  const store::redis::Settings settings;
  store::redis::StoreContext(settings).learn_moved(text);
  const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(store::redis::new_reader(),
                                                                        &redisReaderFree);
  if (redisReaderFeed(reader.get(), text.data(), text.size()) != REDIS_OK) return 0;
  for (void* reply = nullptr;
       redisReaderGetReply(reader.get(), &reply) == REDIS_OK && reply != nullptr;) {
    const auto value = store::redis::value_of(*static_cast<redisReply*>(reply));
    freeReplyObject(reply);
    fuzz::read_all(value.text);
  }
  return 0;
}
