#pragma once

#include <memory>
#include <string>

#include "sql/connection.h"

namespace baton::sql {

// At most `max_connections` sessions with one database, opened when they are needed and kept for
// the next caller. Thread-safe; a borrowed session may outlive the pool.
class BATON_EXPORT Pool {
 public:
  Pool(std::string url, Options options, std::size_t max_connections = 4);

  // One session for one caller. At the end of the scope it goes back to the pool, or is closed if
  // it is unusable or still in a transaction.
  class BATON_EXPORT Borrowed {
   public:
    Borrowed(Borrowed&&) noexcept = default;
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed();
    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }

   private:
    friend class Pool;
    struct State;
    Borrowed(std::shared_ptr<State> state, std::unique_ptr<Connection> connection);
    std::shared_ptr<State> state_;
    std::unique_ptr<Connection> connection_;
  };

  // Waits for a free session and, if it must open one, for the server, until the deadline; without
  // one, for the statement timeout. A session that the server has closed is replaced by a new one.
  [[nodiscard]] Result<Borrowed> take(Connection::By by = {});

 private:
  const std::string url_;
  const Options options_;
  const std::size_t max_connections_;
  std::shared_ptr<Borrowed::State> state_;
};

}  // namespace baton::sql
