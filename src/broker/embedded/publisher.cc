#include "broker/embedded/publisher.h"

#include <algorithm>
#include <thread>

#include "broker/common/message.h"
#include "broker/embedded/headers.h"
#include "broker/embedded/queue_file.h"

namespace baton::broker {
namespace {

// Of one transaction, so that others do not wait long for the write lock.
constexpr std::size_t kMaxMessages = 1'000;
constexpr std::size_t kMaxBytes = 4 << 20;

Confirm returned(std::string why) {
  return {.outcome = PublishOutcome::returned, .why = std::move(why)};
}

// How many messages from the front go into one transaction.
std::size_t batch_size(std::span<const Message> messages) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < messages.size() && count < kMaxMessages && bytes < kMaxBytes) {
    bytes += messages[count++].body.size();
  }
  return count;
}

}  // namespace

Result<void> EmbeddedPublisher::connect(Deadline by) {
  if (connected_) return {};
  auto made = std::make_unique<Connected>();
  auto database = open_broker_file(path_, by);
  if (!database) return database.error();
  made->database = std::move(*database);
  auto presence = Presence::open(path_);
  if (!presence) return presence.error();
  made->presence = std::move(*presence);
  const std::pair<Statement*, std::string_view> statements[] = {
      {&made->version_of, "SELECT version FROM topology"},
      {&made->filling, "SELECT last, last + 1 - next_fresh FROM queue WHERE id = ?1"},
      {&made->given_back,
       "SELECT count(*) FROM delivery WHERE consumer = 0 AND place BETWEEN ?1 AND ?2"},
      {&made->insert,
       "INSERT INTO message(place, id, exchange, routing_key, content_type, headers, body) "
       "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      {&made->set_last, "UPDATE queue SET last = ?2 WHERE id = ?1"},
  };
  for (const auto& [statement, sql] : statements) {
    auto prepared = made->database->prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  connected_ = std::move(made);
  return {};
}

Result<void> EmbeddedPublisher::refresh_topology() {
  Connected& to = *connected_;
  auto row = to.version_of.start().step();
  if (!row) return row.error();
  const std::int64_t version = to.version_of.integer(0);
  to.version_of.reset();
  if (version == to.version) return {};
  auto stored = load_topology(*to.database);
  if (!stored) return stored.error();
  to.stored = std::move(*stored);
  to.routes = Routes(to.stored.topology);
  to.version = version;
  return {};
}

Result<std::uint64_t> EmbeddedPublisher::publish(std::span<const Message> messages, Deadline by) {
  const std::uint64_t first_tag = next_tag_;
  if (messages.empty()) {
    if (auto there = look(by); !there) return there.error();
    return first_tag;
  }
  for (std::size_t done = 0; done < messages.size();) {
    const auto batch = messages.subspan(done, batch_size(messages.subspan(done)));
    const std::uint64_t tag = first_tag + done;
    auto connected = connect(by);
    auto written =
        connected ? write(batch, tag, by) : Result<std::vector<Confirm>>(connected.error());
    if (!written) {
      const Error& error = written.error();
      state_ = {.connected = false, .blocked = false, .why = error.message};
      connected_.reset();
      if (done == 0 && !error.in_doubt) return error;
      // Some of the call may have been taken: what is left is unknown to the caller, not unsent.
      for (std::size_t i = done; i < messages.size(); ++i) {
        confirms_.push_back({first_tag + i, PublishOutcome::unknown, error.message});
      }
      next_tag_ = first_tag + messages.size();
      if (done == 0) return error;
      return first_tag;
    }
    for (Confirm& confirm : *written) confirms_.push_back(std::move(confirm));
    done += batch.size();
    next_tag_ = first_tag + done;
    state_ = {.connected = true};
  }
  return first_tag;
}

Result<void> EmbeddedPublisher::look(Deadline by) {
  auto there = connect(by);
  if (there && connected_->database->moved()) there = moved_away(*connected_->database);
  state_ = {.connected = there.has_value(), .why = there ? "" : there.error().message};
  if (!there) connected_.reset();
  return there;
}

Result<std::vector<Confirm>> EmbeddedPublisher::write(std::span<const Message> messages,
                                                      std::uint64_t first_tag, Deadline by) {
  Connected& to = *connected_;
  auto transaction = begin_write(*to.database, by);
  if (!transaction) return transaction.error();
  if (auto fresh = refresh_topology(); !fresh) return fresh.error();
  std::vector<Confirm> confirms;
  confirms.reserve(messages.size());
  std::map<std::size_t, Filling> queues;
  for (const Message& message : messages) {
    auto confirm = add(message, queues);
    if (!confirm) return confirm.error();
    confirm->tag = first_tag + confirms.size();
    confirms.push_back(std::move(*confirm));
  }
  bool changed = false;
  for (const auto& [queue, filling] : queues) {
    if (!filling.changed) continue;
    changed = true;
    auto set = to.set_last.start(to.stored.queues[queue].id, filling.last).run();
    if (!set) return set.error();
  }
  if (!changed) return confirms;
  if (auto done = transaction->commit(); !done) return done.error();
  // The flush that the commit leaves out, while no other process waits for the write lock.
  if (auto flushed = to.database->sync(); !flushed) return flushed.error();
  to.presence->poke();
  return confirms;
}

Result<Confirm> EmbeddedPublisher::add(const Message& message,
                                       std::map<std::size_t, Filling>& queues) {
  Connected& to = *connected_;
  if (auto problem = message_problem(message); !problem.empty()) {
    return returned(std::move(problem));
  }
  const auto& route = to.routes.route(message);
  if (route.empty()) {
    return returned(to.routes.has_exchange(message.exchange)
                        ? "unroutable: no queue wants it"
                        : "there is no exchange '" + message.exchange + "'");
  }
  Confirm confirm;
  const std::string headers = encode_headers(message.headers);
  for (const std::size_t queue : route) {
    auto found = filling(queue, queues);
    if (!found) return found.error();
    Filling& into = **found;
    const StoredQueue& stored = to.stored.queues[queue];
    if (stored.max_length != 0 && into.ready >= stored.max_length) {
      confirm.outcome = PublishOutcome::refused;
      confirm.why = "queue " + to.stored.topology.queues[queue].name + " is full";
      continue;
    }
    auto inserted =
        to.insert
            .start(place_of(stored.id, into.last + 1), std::string_view(message.id),
                   std::string_view(message.exchange), std::string_view(message.routing_key),
                   std::string_view(message.content_type), Blob{headers}, Blob{message.body})
            .run();
    if (!inserted) return inserted.error();
    ++into.last;
    ++into.ready;
    into.changed = true;
  }
  return confirm;
}

Result<EmbeddedPublisher::Filling*> EmbeddedPublisher::filling(
    std::size_t queue, std::map<std::size_t, Filling>& queues) {
  const auto [it, added] = queues.try_emplace(queue);
  Filling& filling = it->second;
  if (!added) return &filling;
  Connected& to = *connected_;
  const StoredQueue& stored = to.stored.queues[queue];
  auto row = to.filling.start(stored.id).step();
  if (!row) return row.error();
  filling.last = to.filling.integer(0);
  filling.ready = static_cast<std::uint64_t>(to.filling.integer(1));
  to.filling.reset();
  if (stored.max_length == 0) return &filling;
  auto count = to.given_back.start(place_of(stored.id, 0), place_of(stored.id + 1, 0) - 1).step();
  if (!count) return count.error();
  filling.ready += static_cast<std::uint64_t>(to.given_back.integer(0));
  to.given_back.reset();
  return &filling;
}

// Every message has its confirm when publish() returns, so there is nothing to wait for.
Result<std::vector<Confirm>> EmbeddedPublisher::confirms(Deadline by) {
  if (confirms_.empty()) {
    const auto left = by - BootClock::now();
    if (left > left.zero()) std::this_thread::sleep_for(left);
    return std::vector<Confirm>();
  }
  std::vector<Confirm> all(std::make_move_iterator(confirms_.begin()),
                           std::make_move_iterator(confirms_.end()));
  confirms_.clear();
  return all;
}

}  // namespace baton::broker
