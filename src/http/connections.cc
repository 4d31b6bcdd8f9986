#include "http/connections.h"

#include <vector>

#include <boost/asio/ip/address.hpp>

namespace baton::http {
namespace {

bool listens_on_loopback(const std::string& text) {
  boost::system::error_code problem;
  const auto address = boost::asio::ip::make_address(text, problem);
  return !problem && address.is_loopback();
}

}  // namespace

Connections::Connections(Router the_router, ServerOptions the_options,
                         std::shared_ptr<WorkerPool> the_workers)
    : router(std::make_shared<const Router>(std::move(the_router))),
      options(std::move(the_options)),
      on_loopback(listens_on_loopback(options.address)),
      workers(std::move(the_workers)) {}

bool Connections::join(const std::shared_ptr<Connection>& connection, bool& refuse) {
  const std::lock_guard lock(mutex_);
  const bool fits = all_.size() < options.max_connections;
  refuse = !fits && all_.size() < options.max_connections + kMaxRefusing;
  if (fits || refuse) all_.emplace(connection.get(), connection);
  return fits;
}

void Connections::leave(Connection* connection) {
  const std::lock_guard lock(mutex_);
  all_.erase(connection);
  if (all_.empty()) empty_.notify_all();
}

std::size_t Connections::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

template <typename Call>
void Connections::for_each(Call call) {
  std::vector<std::shared_ptr<Connection>> alive;  // the last reference may go outside the mutex
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, weak] : all_) {
      if (auto connection = weak.lock()) alive.push_back(std::move(connection));
    }
  }
  for (const auto& connection : alive) call(*connection);
}

void Connections::drain() {
  stopping = true;
  for_each([](Connection& connection) { connection.drain(); });
}

void Connections::abort() {
  for_each([](Connection& connection) { connection.abort(); });
}

bool Connections::wait_until_empty(Millis grace) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, grace, [this] { return all_.empty(); });
}

}  // namespace baton::http
