#pragma once

// One queue in a broker's file, as a consumer sees it. Everything but open() belongs to the
// transaction that the caller has open.
//
//   fresh ──take──▶ delivered ──ack──▶ gone
//                    │   ▲
//         give back  ▼   │ take
//                   given back ──(back more often than the limit)──▶ the queue for dead letters

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/broker.h"
#include "broker/embedded/broker_file.h"
#include "broker/embedded/presence.h"

namespace baton::broker {

// The place of message `number` in a queue; see schema.sql.
inline constexpr int kNumberBits = 40;
[[nodiscard]] constexpr std::int64_t place_of(std::int64_t queue, std::int64_t number) {
  return (queue << kNumberBits) | number;
}

struct Held {
  std::int64_t place = 0;
  std::uint32_t count = 0;  // of earlier deliveries
  Message message;
};

struct QueueState {
  bool consumer_known = false;  // false: it was given up
  bool may_take = false;        // not if another consumer is the active one
  bool has_messages = false;
};

class QueueFile {
 public:
  // `bad_store`: there is no such queue.
  [[nodiscard]] static Result<std::unique_ptr<QueueFile>> open(std::unique_ptr<Database> database,
                                                               std::string_view queue);

  [[nodiscard]] Result<std::int64_t> add_consumer(int slot);

  [[nodiscard]] Result<QueueState> state(std::int64_t consumer);

  // Consumers of this queue that no longer live, but for this one.
  [[nodiscard]] Result<std::vector<std::int64_t>> dead_consumers(std::int64_t but,
                                                                 const Presence& presence);
  // Gives back all that it has, and forgets it.
  [[nodiscard]] Result<void> give_up(std::int64_t consumer);

  // Makes this the active consumer, if the queue has but one at a time.
  [[nodiscard]] Result<void> activate(std::int64_t consumer);

  // Delivers to the consumer: first what was given back. Stops at `max_bytes` of bodies.
  [[nodiscard]] Result<std::vector<Held>> take(std::int64_t consumer, std::size_t most,
                                               std::size_t max_bytes);

  // False: the consumer does not have it.
  [[nodiscard]] Result<bool> acknowledge(std::int64_t consumer, std::int64_t place);
  [[nodiscard]] Result<bool> give_back(std::int64_t consumer, std::int64_t place);

  [[nodiscard]] Database& database() { return *database_; }

 private:
  explicit QueueFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  [[nodiscard]] Result<void> prepare(std::string_view queue);
  [[nodiscard]] Result<void> move_to_dead_letters(std::int64_t place);
  [[nodiscard]] Result<void> read_messages(Statement& rows, std::size_t most, std::size_t max_bytes,
                                           std::vector<Held>& into, bool& full) const;

  std::unique_ptr<Database> database_;
  std::int64_t id_ = 0;
  bool single_active_ = false;
  std::int64_t dead_letters_ = 0;  // the id of the queue for them; 0: none
  std::string name_;

  Statement state_, consumers_, activate_, given_back_, fresh_, fresh_range_, redeliver_, deliver_,
      set_next_, count_, forget_delivery_, delete_message_, give_back_, held_, forget_consumer_,
      deactivate_, add_consumer_, next_dead_, copy_dead_, set_last_;
};

}  // namespace baton::broker
