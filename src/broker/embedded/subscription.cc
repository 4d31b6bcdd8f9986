#include "broker/embedded/subscription.h"

#include <algorithm>

#include "broker/common/message.h"

namespace baton::broker {
namespace {

// While there are messages, dead consumers are looked for only so often.
constexpr Millis kDeadCheckEvery{50};
// Of the bodies of one take: what a consumer has in memory, and how long others wait meanwhile.
constexpr std::size_t kMaxTakeBytes = 8 << 20;

Error lost() {
  return {.code = Code::lost,
          .message =
              "this consumer was given up, because its process stood still for longer than "
              "its lease: its deliveries are others' now"};
}

}  // namespace

EmbeddedSubscription::EmbeddedSubscription(std::unique_ptr<QueueFile> file, Presence presence,
                                           std::shared_ptr<Watcher> watcher, std::size_t prefetch)
    : file_(std::move(file)),
      presence_(std::move(presence)),
      watcher_(std::move(watcher)),
      prefetch_(prefetch) {}

Result<std::unique_ptr<EmbeddedSubscription>> EmbeddedSubscription::open(
    const std::string& path, std::string_view queue, const SubscribeOptions& options,
    std::shared_ptr<Watcher> watcher, Millis lease, Deadline by) {
  if (options.prefetch == 0 || options.prefetch > kMaxPrefetch) {
    return Error{.code = Code::bad_request,
                 .message = "prefetch is from 1 to " + std::to_string(kMaxPrefetch)};
  }
  auto database = open_broker_file(path, by);
  if (!database) return database.error();
  auto file = QueueFile::open(std::move(*database), queue);
  if (!file) return file.error();
  auto presence = Presence::open(path);
  if (!presence) return presence.error();
  auto slot = presence->take_slot();
  if (!slot) return slot.error();
  std::unique_ptr<EmbeddedSubscription> made(new EmbeddedSubscription(
      std::move(*file), std::move(*presence), std::move(watcher), options.prefetch));

  auto transaction = begin_write(made->file_->database(), by);
  if (!transaction) return transaction.error();
  auto consumer = made->file_->add_consumer(*slot);
  if (!consumer) return consumer.error();
  made->consumer_ = *consumer;
  // Before others can see the consumer: they would take it for dead.
  made->presence_->show(*slot, *consumer, lease);
  if (auto done = transaction->commit(); !done) return done.error();
  made->watcher_->add(*made->presence_, *slot, *consumer);
  return made;
}

EmbeddedSubscription::~EmbeddedSubscription() {
  if (presence_) watcher_->remove(*presence_);
}

Error EmbeddedSubscription::end(Error error) {
  if (presence_) watcher_->remove(*presence_);
  presence_.reset();
  unsettled_.clear();
  return error;
}

Result<void> EmbeddedSubscription::check_usable() const {
  if (presence_) return {};
  return Error{.code = Code::lost, .message = "this subscription has ended: subscribe again"};
}

Result<std::vector<Delivery>> EmbeddedSubscription::take(std::size_t most, Deadline by) {
  while (true) {
    const std::uint64_t seen = watcher_->seen();
    auto found = take_some(most, by);
    if (!found || !found->empty()) return found;
    if (const Instant now = BootClock::now(); now >= by) {
      return std::vector<Delivery>();
    } else {
      watcher_->wait(seen, std::min<Deadline>(by, now + Watcher::kLookEvery));
    }
  }
}

Result<std::vector<Delivery>> EmbeddedSubscription::take_some(std::size_t most, Deadline by) {
  if (auto usable = check_usable(); !usable) return usable.error();
  const std::size_t room = prefetch_ - std::min(prefetch_, unsettled_.size());
  const std::size_t wanted = std::min(most, room);
  if (wanted == 0) return std::vector<Delivery>();
  auto found = look(wanted, by);
  if (!found) return end(std::move(found.error()));
  return found;
}

Result<std::vector<Delivery>> EmbeddedSubscription::look(std::size_t most, Deadline by) {
  auto worth = worth_taking(by);
  if (!worth) return worth.error();
  if (!*worth) return std::vector<Delivery>();
  auto taken = take_now(most, by);
  // The write lock did not come free in time: nothing was taken, and nothing is lost.
  if (!taken && taken.error().code == Code::unavailable && !taken.error().in_doubt) {
    return std::vector<Delivery>();
  }
  return taken;
}

Result<bool> EmbeddedSubscription::worth_taking(Deadline by) {
  Database& database = file_->database();
  database.wait_until(by);
  auto reading = Transaction::begin(database, Transaction::Kind::read);
  if (!reading) return reading.error();
  auto state = file_->state(consumer_);
  if (!state) return state.error();
  if (!state->consumer_known) return lost();
  if (state->has_messages && state->may_take && BootClock::now() < next_dead_check_) return true;
  next_dead_check_ = BootClock::now() + kDeadCheckEvery;
  auto dead = file_->dead_consumers(consumer_, *presence_);
  if (!dead) return dead.error();
  return !dead->empty() || (state->has_messages && state->may_take);
}

Result<std::vector<Delivery>> EmbeddedSubscription::take_now(std::size_t most, Deadline by) {
  auto transaction = begin_write(file_->database(), by);
  if (!transaction) return transaction.error();
  auto dead = file_->dead_consumers(consumer_, *presence_);
  if (!dead) return dead.error();
  for (const std::int64_t consumer : *dead) {
    if (auto done = file_->give_up(consumer); !done) return done.error();
  }
  auto state = file_->state(consumer_);
  if (!state) return state.error();
  if (!state->consumer_known) return lost();
  std::vector<Held> held;
  if (state->may_take && state->has_messages) {
    if (auto done = file_->activate(consumer_); !done) return done.error();
    auto taken = file_->take(consumer_, most, kMaxTakeBytes);
    if (!taken) return taken.error();
    held = std::move(*taken);
  }
  if (auto done = transaction->commit(); !done) return done.error();
  // A dead consumer may have given back more messages than were taken here: wake the others.
  if (!dead->empty()) presence_->poke();
  std::vector<Delivery> deliveries;
  deliveries.reserve(held.size());
  for (Held& one : held) {
    unsettled_.emplace(++last_tag_, one.place);
    deliveries.push_back({last_tag_, std::move(one.message), one.count});
  }
  return deliveries;
}

Result<void> EmbeddedSubscription::settle(std::span<const Settlement> settlements, Deadline by) {
  if (auto usable = check_usable(); !usable) return usable;
  if (settlements.empty()) return {};
  auto settled = settle_now(settlements, by);
  if (!settled) return end(std::move(settled.error()));
  return {};
}

Result<void> EmbeddedSubscription::settle_now(std::span<const Settlement> settlements,
                                              Deadline by) {
  auto transaction = begin_write(file_->database(), by);
  if (!transaction) return transaction.error();
  bool any_requeued = false;
  for (const Settlement& settlement : settlements) {
    const auto found = unsettled_.find(settlement.tag);
    if (found == unsettled_.end()) {
      return Error{.code = Code::bad_request,
                   .message = "delivery " + std::to_string(settlement.tag) +
                              " is not one of this subscription, or is settled already"};
    }
    const bool requeue = settlement.how == Settle::requeue;
    auto had = requeue ? file_->give_back(consumer_, found->second)
                       : file_->acknowledge(consumer_, found->second);
    if (!had) return had.error();
    if (!*had) return lost();
    any_requeued = any_requeued || requeue;
    unsettled_.erase(found);
  }
  if (auto done = transaction->commit(); !done) return done;
  if (any_requeued) presence_->poke();
  return {};
}

}  // namespace baton::broker
