#pragma once

// What carries a notification to its user. Handling an event may be repeated after a crash, and
// with it the call of send(): a sender must do nothing for an idempotency key that it has seen.

#include <memory>
#include <string>

#include "baton/result.h"

namespace baton::documents::notification {

struct Notice {
  std::string idempotency_key;  // of event, channel and user
  std::string channel;
  std::string user;
  std::string subject;
  std::string body;
  std::string document_id;
  std::string correlation_id;
};

class Sender {
 public:
  virtual ~Sender() = default;
  // An error of either is a technical failure: the event is tried again.
  virtual Result<void> send(const Notice& notice) = 0;
  // Before the events are committed: all that was sent can be lost no more when it returns.
  virtual Result<void> flush() = 0;
};

// A file a notice: DIRECTORY/CHANNEL/KEY.json. It appears when flush() is called.
[[nodiscard]] std::unique_ptr<Sender> spool_sender(std::string directory);

}  // namespace baton::documents::notification
