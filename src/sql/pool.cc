#include "sql/pool.h"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace baton::sql {

struct Pool::Borrowed::State {
  std::mutex mutex;
  std::condition_variable freed;
  std::size_t lent = 0;
  std::vector<std::unique_ptr<Connection>> idle;

  void give_back(std::unique_ptr<Connection> connection) {
    const bool keep = connection != nullptr && connection->idle();
    std::unique_ptr<Connection> closing = keep ? nullptr : std::move(connection);
    {
      const std::lock_guard lock(mutex);
      --lent;
      if (keep) idle.push_back(std::move(connection));
    }
    freed.notify_one();
  }
};

Pool::Borrowed::Borrowed(std::shared_ptr<State> state, std::unique_ptr<Connection> connection)
    : state_(std::move(state)), connection_(std::move(connection)) {}

Pool::Borrowed::~Borrowed() {
  if (state_) state_->give_back(std::move(connection_));
}

Pool::Pool(std::string url, Options options, std::size_t max_connections)
    : url_(std::move(url)),
      options_(std::move(options)),
      max_connections_(max_connections),
      state_(std::make_shared<Borrowed::State>()) {}

Result<Pool::Borrowed> Pool::take(Connection::By by) {
  const Deadline deadline = by.value_or(BootClock::now() + options_.statement_timeout);
  std::unique_lock lock(state_->mutex);
  while (state_->lent >= max_connections_) {
    const auto left = deadline - BootClock::now();
    if (left <= left.zero()) {
      return Error{.code = Code::unavailable,
                   .message = (options_.name.empty() ? "the database" : options_.name) + ": all " +
                              std::to_string(max_connections_) + " connections are in use",
                   .retryable = true};
    }
    state_->freed.wait_for(lock, left);
  }
  ++state_->lent;
  Borrowed borrowed(state_, nullptr);
  while (!state_->idle.empty()) {
    borrowed.connection_ = std::move(state_->idle.back());
    state_->idle.pop_back();
    lock.unlock();
    if (borrowed.connection_->still_there()) return borrowed;
    borrowed.connection_.reset();
    lock.lock();
  }
  lock.unlock();
  auto opened = Connection::open(url_, options_, deadline);
  if (!opened) return opened.error();
  borrowed.connection_ = std::move(*opened);
  return borrowed;
}

}  // namespace baton::sql
