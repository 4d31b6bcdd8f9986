#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "baton/broker.h"

namespace baton::broker::rabbitmq {

// Identifies a returned message: AMQP gives it back as it was sent, but without its delivery tag.
[[nodiscard]] BATON_EXPORT std::uint64_t fingerprint(std::string_view exchange,
                                                     std::string_view routing_key,
                                                     std::string_view id);

// The messages sent on one channel that have no confirm yet. Pure.
//
// The server numbers what it gets from 1 on, and confirms single numbers or all up to one. An
// unroutable message is returned first and then acknowledged like the others. Of several with one
// fingerprint the first is the returned one: the server returns them in the order they were sent.
class BATON_EXPORT ConfirmWindow {
 public:
  void sent(std::uint64_t tag, std::uint64_t print) { entries_.push_back({tag, print}); }
  void returned(std::uint64_t print, std::string why);
  // Adds the confirms that a basic.ack or basic.nack means. False if it names what was never sent.
  [[nodiscard]] bool resolve(std::uint64_t number, bool multiple, bool taken,
                             std::vector<Confirm>& confirms);
  // The channel is gone: nobody will ever know. The numbers begin again.
  void abandon(const std::string& why, std::vector<Confirm>& confirms);
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::uint64_t tag;
    std::uint64_t print;
    bool resolved = false;
    bool returned = false;
  };
  void resolve(Entry& entry, bool taken, std::vector<Confirm>& confirms);

  std::deque<Entry> entries_;                      // the first is never resolved
  std::uint64_t first_ = 1;                        // its number
  std::map<std::uint64_t, std::string> returned_;  // why, by our tags
};

}  // namespace baton::broker::rabbitmq
