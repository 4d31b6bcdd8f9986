#include "broker/embedded/queue_file.h"

#include "broker/common/message.h"
#include "broker/embedded/headers.h"

namespace baton::broker {
namespace {

Error damaged(const Database& database, const std::string& what) {
  return {.code = Code::bad_store, .message = database.path() + " is damaged: " + what};
}

}  // namespace

Result<std::unique_ptr<QueueFile>> QueueFile::open(std::unique_ptr<Database> database,
                                                   std::string_view queue) {
  std::unique_ptr<QueueFile> file(new QueueFile(std::move(database)));
  if (auto prepared = file->prepare(queue); !prepared) return prepared.error();
  return file;
}

Result<void> QueueFile::prepare(std::string_view queue) {
  name_ = queue;
  auto find = database_->prepare(
      "SELECT q.id, q.single_active, CASE WHEN q.dead_letters THEN d.id ELSE 0 END "
      "FROM queue q LEFT JOIN queue d ON d.name = q.name || '.dlq' WHERE q.name = ?1");
  if (!find) return find.error();
  auto row = find->start(queue).step();
  if (!row) return row.error();
  if (!*row) {
    return Error{.code = Code::bad_store,
                 .message = "there is no queue '" + std::string(queue.substr(0, 255)) + "' in " +
                            database_->path() + ": declare the topology first"};
  }
  id_ = find->integer(0);
  single_active_ = find->integer(1) != 0;
  dead_letters_ = find->integer(2);
  find->reset();

  const std::pair<Statement*, std::string_view> statements[] = {
      {&state_,
       "SELECT EXISTS (SELECT 1 FROM consumer WHERE id = ?2), active, "
       "next_fresh <= last OR EXISTS (SELECT 1 FROM delivery "
       "WHERE consumer = 0 AND place BETWEEN ?3 AND ?4) FROM queue WHERE id = ?1"},
      {&consumers_, "SELECT id, slot FROM consumer WHERE queue = ?1 AND id <> ?2"},
      {&activate_, "UPDATE queue SET active = ?2 WHERE id = ?1"},
      {&given_back_,
       "SELECT m.place, d.count, m.id, m.exchange, m.routing_key, m.content_type, m.headers, "
       "m.body FROM delivery d JOIN message m ON m.place = d.place "
       "WHERE d.consumer = 0 AND d.place BETWEEN ?1 AND ?2 ORDER BY d.place"},
      {&fresh_range_, "SELECT next_fresh, last FROM queue WHERE id = ?1"},
      {&fresh_,
       "SELECT place, 0, id, exchange, routing_key, content_type, headers, body FROM message "
       "WHERE place BETWEEN ?1 AND ?2 ORDER BY place"},
      {&redeliver_, "UPDATE delivery SET consumer = ?1 WHERE consumer = 0 AND place = ?2"},
      {&deliver_, "INSERT INTO delivery(consumer, place, count) VALUES(?1, ?2, 0)"},
      {&set_next_, "UPDATE queue SET next_fresh = ?2 WHERE id = ?1"},
      {&count_, "SELECT count FROM delivery WHERE consumer = ?1 AND place = ?2"},
      {&forget_delivery_, "DELETE FROM delivery WHERE consumer = ?1 AND place = ?2"},
      {&delete_message_, "DELETE FROM message WHERE place = ?1"},
      {&give_back_,
       "UPDATE delivery SET consumer = 0, count = count + 1 WHERE consumer = ?1 AND place = ?2"},
      {&held_, "SELECT place FROM delivery WHERE consumer = ?1"},
      {&forget_consumer_, "DELETE FROM consumer WHERE id = ?1"},
      {&deactivate_, "UPDATE queue SET active = 0 WHERE id = ?1 AND active = ?2"},
      {&add_consumer_, "INSERT INTO consumer(queue, slot) VALUES(?1, ?2)"},
      {&next_dead_, "SELECT last + 1 FROM queue WHERE id = ?1"},
      {&copy_dead_,
       "INSERT INTO message(place, id, exchange, routing_key, content_type, headers, body) "
       "SELECT ?2, id, exchange, routing_key, content_type, headers, body FROM message "
       "WHERE place = ?1"},
      {&set_last_, "UPDATE queue SET last = ?2 WHERE id = ?1"},
  };
  for (const auto& [statement, sql] : statements) {
    auto prepared = database_->prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return {};
}

Result<std::int64_t> QueueFile::add_consumer(int slot) {
  if (auto added = add_consumer_.start(id_, std::int64_t{slot}).run(); !added) {
    return added.error();
  }
  return database_->last_rowid();
}

Result<QueueState> QueueFile::state(std::int64_t consumer) {
  const store::sqlite::Rewind rewind(state_);
  auto row = state_.start(id_, consumer, place_of(id_, 0), place_of(id_ + 1, 0) - 1).step();
  if (!row) return row.error();
  if (!*row) return damaged(*database_, "queue " + name_ + " is gone");
  const std::int64_t active = state_.integer(1);
  return QueueState{.consumer_known = state_.integer(0) != 0,
                    .may_take = !single_active_ || active == 0 || active == consumer,
                    .has_messages = state_.integer(2) != 0};
}

Result<std::vector<std::int64_t>> QueueFile::dead_consumers(std::int64_t but,
                                                            const Presence& presence) {
  std::vector<std::int64_t> dead;
  const store::sqlite::Rewind rewind(consumers_);
  consumers_.start(id_, but);
  while (true) {
    auto row = consumers_.step();
    if (!row) return row.error();
    if (!*row) return dead;
    const std::int64_t consumer = consumers_.integer(0);
    if (!presence.lives(static_cast<int>(consumers_.integer(1)), consumer)) {
      dead.push_back(consumer);
    }
  }
}

Result<void> QueueFile::give_up(std::int64_t consumer) {
  std::vector<std::int64_t> places;
  held_.start(consumer);
  while (true) {
    auto row = held_.step();
    if (!row) return row.error();
    if (!*row) break;
    places.push_back(held_.integer(0));
  }
  for (const std::int64_t place : places) {
    if (auto given = give_back(consumer, place); !given) return given.error();
  }
  if (auto forgotten = forget_consumer_.start(consumer).run(); !forgotten) return forgotten;
  return deactivate_.start(id_, consumer).run();
}

Result<void> QueueFile::activate(std::int64_t consumer) {
  if (!single_active_) return {};
  return activate_.start(id_, consumer).run();
}

Result<void> QueueFile::read_messages(Statement& rows, std::size_t most, std::size_t max_bytes,
                                      std::vector<Held>& into, bool& full) const {
  const store::sqlite::Rewind rewind(rows);
  std::size_t bytes = 0;
  for (const Held& held : into) bytes += held.message.body.size();
  while (into.size() < most && (into.empty() || bytes < max_bytes)) {
    auto row = rows.step();
    if (!row) return row.error();
    if (!*row) return {};
    Held held{.place = rows.integer(0), .count = static_cast<std::uint32_t>(rows.integer(1))};
    Message& message = held.message;
    message.id = rows.text(2);
    message.exchange = rows.text(3);
    message.routing_key = rows.text(4);
    message.content_type = rows.text(5);
    auto headers = decode_headers(rows.bytes(6));
    if (!headers) return damaged(*database_, "the headers of a message in queue " + name_);
    message.headers = std::move(*headers);
    message.body = rows.bytes(7);
    bytes += message.body.size();
    into.push_back(std::move(held));
  }
  full = true;
  return {};
}

Result<std::vector<Held>> QueueFile::take(std::int64_t consumer, std::size_t most,
                                          std::size_t max_bytes) {
  std::vector<Held> taken;
  bool full = false;
  given_back_.start(place_of(id_, 0), place_of(id_ + 1, 0) - 1);
  if (auto read = read_messages(given_back_, most, max_bytes, taken, full); !read) {
    return read.error();
  }
  for (const Held& held : taken) {
    if (auto done = redeliver_.start(consumer, held.place).run(); !done) return done.error();
  }
  if (full) return taken;

  auto range = fresh_range_.start(id_).step();
  if (!range) return range.error();
  const std::int64_t next = fresh_range_.integer(0);
  const std::int64_t last = fresh_range_.integer(1);
  fresh_range_.reset();
  if (next > last) return taken;
  const std::size_t old = taken.size();
  fresh_.start(place_of(id_, next), place_of(id_, last));
  if (auto read = read_messages(fresh_, most, max_bytes, taken, full); !read) return read.error();
  for (std::size_t i = old; i < taken.size(); ++i) {
    if (auto done = deliver_.start(consumer, taken[i].place).run(); !done) return done.error();
  }
  const std::int64_t up_to =
      full ? taken.back().place - place_of(id_, 0) : last;  // full: at least one was read
  if (auto set = set_next_.start(id_, up_to + 1).run(); !set) return set.error();
  return taken;
}

Result<bool> QueueFile::acknowledge(std::int64_t consumer, std::int64_t place) {
  if (auto done = forget_delivery_.start(consumer, place).run(); !done) return done.error();
  if (database_->changes() == 0) return false;
  if (auto done = delete_message_.start(place).run(); !done) return done.error();
  return true;
}

Result<bool> QueueFile::give_back(std::int64_t consumer, std::int64_t place) {
  auto row = count_.start(consumer, place).step();
  if (!row) return row.error();
  const bool has = *row;
  const std::int64_t count = has ? count_.integer(0) : 0;
  count_.reset();
  if (!has) return false;
  if (dead_letters_ == 0 || count < std::int64_t{kDeliveryLimit}) {
    if (auto done = give_back_.start(consumer, place).run(); !done) return done.error();
    return true;
  }
  if (auto moved = move_to_dead_letters(place); !moved) return moved.error();
  return acknowledge(consumer, place);
}

Result<void> QueueFile::move_to_dead_letters(std::int64_t place) {
  auto row = next_dead_.start(dead_letters_).step();
  if (!row) return row.error();
  const std::int64_t number = next_dead_.integer(0);
  next_dead_.reset();
  if (auto copied = copy_dead_.start(place, place_of(dead_letters_, number)).run(); !copied) {
    return copied;
  }
  return set_last_.start(dead_letters_, number).run();
}

}  // namespace baton::broker
