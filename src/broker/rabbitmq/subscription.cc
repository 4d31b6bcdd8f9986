#include "broker/rabbitmq/subscription.h"

#include <charconv>

#include "broker/common/message.h"

namespace baton::broker::rabbitmq {
namespace {

constexpr amqp_channel_t kConsume = 1;

}  // namespace

Result<std::unique_ptr<Subscription>> RabbitmqSubscription::open(const Settings& settings,
                                                                 std::vector<std::string> queues,
                                                                 const SubscribeOptions& options,
                                                                 Deadline by) {
  if (options.prefetch == 0 || options.prefetch > kMaxPrefetch) {
    return Error{.code = Code::bad_request,
                 .message = "prefetch is from 1 to " + std::to_string(kMaxPrefetch)};
  }
  for (const auto& queue : queues) {
    if (!queue.empty() && queue.size() <= kMaxShortText) continue;
    return Error{
        .code = Code::bad_request,
        .message = "the name of a queue has from 1 to " + std::to_string(kMaxShortText) + " bytes"};
  }
  if (queues.empty()) {
    return Error{.code = Code::bad_request, .message = "a subscription is of at least one queue"};
  }
  auto connection = Connection::open(settings, "Baton consumer of " + queues.front(), by);
  if (!connection) return connection.error();
  std::unique_ptr<RabbitmqSubscription> made(
      new RabbitmqSubscription(std::move(*connection), std::move(queues)));
  if (auto consuming = made->consume(options.prefetch, by); !consuming) return consuming.error();
  return std::unique_ptr<Subscription>(std::move(made));
}

Result<void> RabbitmqSubscription::consume(std::size_t prefetch, Deadline by) {
  Channel channel(*connection_, kConsume);
  // Without `global` it is the limit of each consumer that follows.
  amqp_basic_qos_t qos{.prefetch_count = static_cast<std::uint16_t>(prefetch)};
  auto limited = channel.ask(AMQP_BASIC_QOS_METHOD, &qos, by);
  if (!limited) return limited.error();
  if (limited->refused()) return connection_->broken(limited->text);
  // The first queues deliver while the others are asked for.
  const auto others = [&](const amqp_frame_t& frame) { return take_frame(frame); };
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const std::string tag = std::to_string(i);
    amqp_basic_consume_t consume{.queue = bytes_of(queues_[i]), .consumer_tag = bytes_of(tag)};
    auto consuming = channel.ask(AMQP_BASIC_CONSUME_METHOD, &consume, by, others);
    if (!consuming) return consuming.error();
    if (consuming->refused()) return refused(queues_[i], *consuming);
  }
  return {};
}

Error RabbitmqSubscription::refused(const std::string& queue, const Channel::Reply& reply) const {
  const std::string& where = connection_->settings().location;
  if (reply.code == AMQP_NOT_FOUND) {
    return {.code = Code::bad_store, .message = "there is no queue '" + queue + "' in " + where};
  }
  const bool forbidden = reply.code == AMQP_ACCESS_REFUSED;
  return {.code = forbidden ? Code::unauthorized : Code::bad_store,
          .message = "cannot consume queue '" + queue + "' of " + where + ": " + reply.text};
}

std::string RabbitmqSubscription::queue_of(std::string_view consumer) const {
  std::size_t place = 0;
  std::from_chars(consumer.data(), consumer.data() + consumer.size(), place);
  return place < queues_.size() ? queues_[place] : queues_.front();
}

Error RabbitmqSubscription::end(Error error) {
  if (!ended_) ended_ = std::move(error);
  // Now, and not when the subscription is thrown away, others get what it had.
  connection_.reset();
  return *ended_;
}

Result<void> RabbitmqSubscription::take_frame(const amqp_frame_t& frame) {
  if (frame.channel != kConsume) return {};
  if (frame.frame_type != AMQP_FRAME_METHOD) {
    if (!incoming_.add(frame)) return connection_->broken("an unexpected frame");
    if (incoming_.whole()) {
      deliveries_.push_back(std::move(incoming_.delivery()));
      incoming_ = {};
    }
    return {};
  }
  const void* const fields = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_DELIVER_METHOD:
      incoming_.begin(*static_cast<const amqp_basic_deliver_t*>(fields));
      return {};
    case AMQP_BASIC_CANCEL_METHOD: {
      const auto& consumer = static_cast<const amqp_basic_cancel_t*>(fields)->consumer_tag;
      return Error{.code = Code::bad_store,
                   .message = connection_->settings().location + ": the queue '" +
                              queue_of(view_of(consumer)) + "' is gone, or has no leader",
                   .retryable = true};
    }
    case AMQP_CHANNEL_CLOSE_METHOD:
      return connection_->broken(refusal(*static_cast<const amqp_channel_close_t*>(fields)).text);
    default: return connection_->broken("an unexpected method");
  }
}

Result<std::vector<Delivery>> RabbitmqSubscription::take(std::size_t most, Deadline by) {
  if (ended_) return *ended_;
  std::vector<Delivery> taken;
  if (most == 0) return taken;
  // All that has come, so that heartbeats are seen, and waits only if it is nothing.
  while (true) {
    auto frame = connection_->next(deliveries_.empty() ? by : BootClock::now());
    if (!frame) return end(frame.error());
    if (*frame != nullptr) {
      if (auto added = take_frame(**frame); !added) return end(added.error());
    } else if (!deliveries_.empty() || BootClock::now() >= by) {
      break;
    }
  }
  while (!deliveries_.empty() && taken.size() < most) {
    unsettled_.insert(deliveries_.front().tag);
    taken.push_back(std::move(deliveries_.front()));
    deliveries_.pop_front();
  }
  return taken;
}

Result<void> RabbitmqSubscription::settle(std::span<const Settlement> settlements, Deadline by) {
  if (ended_) return *ended_;
  std::set<std::uint64_t> acked;
  for (const auto& [tag, how] : settlements) {
    if (unsettled_.erase(tag) == 0) {
      return end({.code = Code::bad_request,
                  .message = "there is no unsettled delivery " + std::to_string(tag)});
    }
    if (how == Settle::ack) {
      acked.insert(tag);
      continue;
    }
    amqp_basic_reject_t reject{.delivery_tag = tag, .requeue = 1};
    add_method(connection_->out(), kConsume, AMQP_BASIC_REJECT_METHOD, &reject, 32);
  }
  // All up to the first that is neither settled by now nor to be acknowledged, in one.
  const std::uint64_t first_left = unsettled_.empty() ? ~std::uint64_t{0} : *unsettled_.begin();
  const auto others = acked.lower_bound(first_left);
  const auto acknowledge = [&](std::uint64_t tag, bool multiple) {
    amqp_basic_ack_t ack{.delivery_tag = tag, .multiple = static_cast<amqp_boolean_t>(multiple)};
    add_method(connection_->out(), kConsume, AMQP_BASIC_ACK_METHOD, &ack, 32);
  };
  if (others != acked.begin()) acknowledge(*std::prev(others), true);
  for (auto tag = others; tag != acked.end(); ++tag) acknowledge(*tag, false);
  if (auto sent = connection_->flush(by); !sent) return end(sent.error());
  return {};
}

}  // namespace baton::broker::rabbitmq
