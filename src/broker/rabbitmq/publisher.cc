#include "broker/rabbitmq/publisher.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "broker/common/message.h"

namespace baton::broker::rabbitmq {
namespace {

constexpr amqp_channel_t kPublish = 1;
constexpr amqp_channel_t kAsk = 2;
constexpr std::size_t kMostUnsent = 4 << 20;  // bytes; what is published behind it waits
constexpr std::size_t kMostKnown = 1'000;     // exchanges
constexpr Millis kRemember{10'000};
constexpr Millis kReconnect{500};

// The number behind these words.
std::optional<std::size_t> number_behind(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + at + words.size();
  std::size_t number = 0;
  const auto read = std::from_chars(begin, text.data() + text.size(), number);
  if (read.ec != std::errc{}) return std::nullopt;
  return number;
}

// The name in: access to exchange 'NAME' in vhost …
std::string exchange_in(std::string_view text) {
  constexpr std::string_view kBefore = "exchange '";
  const auto at = text.find(kBefore);
  if (at == std::string_view::npos) return {};
  const auto begin = at + kBefore.size();
  const auto end = text.find("' in vhost", begin);
  return end == std::string_view::npos ? std::string()
                                       : std::string(text.substr(begin, end - begin));
}

}  // namespace

PublisherState RabbitmqPublisher::state() const {
  const bool is_blocked = connection_ && connection_->blocked();
  return {.connected = connection_ != nullptr,
          .blocked = is_blocked,
          .why = is_blocked ? connection_->blocked_why() : why_};
}

Error RabbitmqPublisher::blocked() const {
  return {.code = Code::unavailable,
          .message = settings_.location +
                     ": the broker takes no messages now: " + connection_->blocked_why(),
          .retryable = true};
}

void RabbitmqPublisher::drop(const Error& error) {
  why_ = error.message;
  window_.abandon(error.message, confirms_);
  channel_.reset();
  questions_.reset();
  connection_.reset();
  known_exchanges_.clear();
  returned_ = {};
}

Result<void> RabbitmqPublisher::connect(Deadline by) {
  if (connection_) return {};
  auto opened = Connection::open(settings_, "Baton publisher", by);
  if (!opened) {
    why_ = opened.error().message;
    return opened.error();
  }
  connection_ = std::move(*opened);
  channel_.emplace(*connection_, kPublish);
  questions_.emplace(*connection_, kAsk);
  amqp_confirm_select_t select{};
  auto selected = channel_->ask(AMQP_CONFIRM_SELECT_METHOD, &select, by);
  if (selected && selected->refused()) selected = connection_->broken(selected->text);
  if (!selected) {
    drop(selected.error());
    return selected.error();
  }
  why_.clear();
  return {};
}

// While the server does not read, what is sent stays here: up to a limit.
Result<void> RabbitmqPublisher::make_room(Deadline by) {
  if (auto taken = take_frames(BootClock::now()); !taken) return taken;
  while (connection_->unsent() > kMostUnsent && !connection_->blocked()) {
    auto frame = connection_->next(by);
    if (!frame) return frame.error();
    if (*frame != nullptr) {
      if (auto taken = take_frame(**frame); !taken) return taken;
    } else if (BootClock::now() >= by) {
      return Error{.code = Code::unavailable,
                   .message = settings_.location + ": the server takes nothing",
                   .retryable = true};
    }
  }
  if (connection_->blocked()) return blocked();
  return {};
}

Result<std::string> RabbitmqPublisher::exchange_problem(const std::string& exchange, Deadline by) {
  if (exchange.empty()) return std::string("there is no exchange ''");
  if (known_exchanges_.contains(exchange)) return std::string();
  amqp_exchange_declare_t declare{.exchange = bytes_of(exchange), .passive = 1};
  auto reply = questions_->ask(AMQP_EXCHANGE_DECLARE_METHOD, &declare, by,
                               [this](const amqp_frame_t& frame) { return take_frame(frame); });
  if (!reply) return reply.error();
  if (reply->refused()) {
    return "there is no exchange '" + exchange + "' in " + settings_.location + " (" + reply->text +
           ")";
  }
  if (known_exchanges_.size() >= kMostKnown) known_exchanges_.clear();
  known_exchanges_.insert(exchange);
  return std::string();
}

std::string RabbitmqPublisher::refusal_of(const Message& message) const {
  if (!most_bytes_ && refused_exchanges_.empty()) return {};
  const Instant now = BootClock::now();
  if (most_bytes_ && now < most_bytes_->second && message.body.size() > most_bytes_->first) {
    return "too large: its body has " + std::to_string(message.body.size()) + " bytes, at most " +
           std::to_string(most_bytes_->first) + " are allowed by the server";
  }
  const auto refused = refused_exchanges_.find(message.exchange);
  if (refused != refused_exchanges_.end() && now < refused->second.until) {
    return refused->second.why;
  }
  return {};
}

Result<std::uint64_t> RabbitmqPublisher::publish(std::span<const Message> messages, Deadline by) {
  if (auto connected = connect(by); !connected) return connected.error();
  auto ready = make_room(by);
  std::map<std::string, std::string> problems;  // of exchanges
  for (std::size_t i = 0; ready && i < messages.size(); ++i) {
    const std::string& exchange = messages[i].exchange;
    if (exchange.size() > kMaxShortText || known_exchanges_.contains(exchange) ||
        problems.contains(exchange)) {
      continue;
    }
    auto problem = exchange_problem(exchange, by);
    if (!problem) {
      ready = problem.error();
    } else if (!problem->empty()) {
      problems.emplace(exchange, std::move(*problem));
    }
  }
  if (!ready) {
    if (!connection_->usable()) drop(ready.error());  // one that is blocked is
    return ready.error();
  }
  const std::uint64_t first_tag = next_tag_;
  for (const Message& message : messages) {
    const std::uint64_t tag = next_tag_++;
    std::string problem = message_problem(message);
    if (problem.empty()) {
      const auto of_exchange = problems.find(message.exchange);
      problem = of_exchange == problems.end() ? refusal_of(message) : of_exchange->second;
    }
    if (problem.empty() &&
        !add_message(connection_->out(), kPublish, message, connection_->frame_max())) {
      problem = "too large: its headers do not fit in a frame";
    }
    if (problem.empty()) {
      window_.sent(tag, fingerprint(message.exchange, message.routing_key, message.id));
    } else {
      confirms_.push_back({tag, PublishOutcome::returned, std::move(problem)});
    }
  }
  if (auto sent = connection_->send_some(); !sent) drop(sent.error());
  return first_tag;
}

Result<void> RabbitmqPublisher::take_frames(Deadline by) {
  while (true) {
    auto frame = connection_->next(confirms_.empty() ? by : BootClock::now());
    if (!frame) return frame.error();
    if (*frame != nullptr) {
      if (auto taken = take_frame(**frame); !taken) return taken;
    } else if (!confirms_.empty() || BootClock::now() >= by) {
      return {};
    }
  }
}

Result<void> RabbitmqPublisher::take_frame(const amqp_frame_t& frame) {
  if (frame.channel != kPublish) return {};
  if (frame.frame_type == AMQP_FRAME_METHOD) return take_method(frame.payload.method);
  if (!returned_.add(frame)) return connection_->broken("an unexpected frame");
  if (!returned_.whole()) return {};
  const Message& message = returned_.delivery().message;
  window_.returned(fingerprint(message.exchange, message.routing_key, message.id),
                   "unroutable: no queue wants it (" + returned_.reply_text() + ")");
  returned_ = {};
  return {};
}

Result<void> RabbitmqPublisher::take_method(const amqp_method_t& method) {
  bool known = true;
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      known = window_.resolve(ack->delivery_tag, ack->multiple != 0, true, confirms_);
      break;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      known = window_.resolve(nack->delivery_tag, nack->multiple != 0, false, confirms_);
      break;
    }
    case AMQP_BASIC_RETURN_METHOD:
      returned_.begin(*static_cast<const amqp_basic_return_t*>(method.decoded));
      break;
    case AMQP_CHANNEL_CLOSE_METHOD:
      return channel_closed(*static_cast<const amqp_channel_close_t*>(method.decoded));
    default: return connection_->broken("an unexpected method");
  }
  if (!known) return connection_->broken("a confirm of what was not sent");
  return {};
}

// Rights or limits of the server that only a message runs into. Remembered, so that the same
// message does not take the others with it again and again.
Result<void> RabbitmqPublisher::channel_closed(const amqp_channel_close_t& close) {
  const auto [fields, code, text] = refusal(close);
  const Instant until = BootClock::now() + kRemember;
  if (code == AMQP_ACCESS_REFUSED) {
    std::erase_if(refused_exchanges_,
                  [](const auto& refused) { return refused.second.until < BootClock::now(); });
    if (const std::string exchange = exchange_in(text); !exchange.empty()) {
      refused_exchanges_[exchange] = {text, until};
    }
  }
  if (const auto most = number_behind(text, "than configured max size ")) {
    most_bytes_ = {*most, until};
  }
  return connection_->broken(text);
}

Result<std::vector<Confirm>> RabbitmqPublisher::confirms(Deadline by) {
  while (true) {
    if (connection_) {
      // Also if there are confirms: it keeps the connection alive.
      auto taken = take_frames(confirms_.empty() ? by : BootClock::now());
      if (!taken) drop(taken.error());
    }
    const Instant now = BootClock::now();
    if (!confirms_.empty()) return std::exchange(confirms_, {});
    if (now >= by) return std::vector<Confirm>();
    if (connection_) continue;
    if (now < connect_at_) {
      std::this_thread::sleep_for(std::min(by, connect_at_) - now);
      continue;
    }
    connect_at_ = now + kReconnect;
    (void)connect(by);
  }
}

}  // namespace baton::broker::rabbitmq
