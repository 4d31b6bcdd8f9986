#include "http/connections.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace baton::http {
namespace {

constexpr std::size_t kMaxExtra = 64;

std::size_t descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1U << 20U));
}

}  // namespace

bool is_loopback_address(const std::string& text) {
  boost::system::error_code problem;
  const auto address = boost::asio::ip::make_address(text, problem);
  return !problem && address.is_loopback();
}

ConnectionLimits ConnectionLimits::of(const ServerOptions& options, std::size_t descriptors) {
  const std::size_t reserve = std::min(options.reserved_descriptors, descriptors / 2);
  const std::size_t room = descriptors - reserve;
  const std::size_t extra = std::min(kMaxExtra, room / 4);
  return {.serve = std::max<std::size_t>(1, std::min(options.max_connections, room - extra)),
          .extra = extra};
}

Connections::Connections(Router the_router, ServerOptions the_options,
                         std::shared_ptr<WorkerPool> the_workers)
    : router(std::make_shared<const Router>(std::move(the_router))),
      options(std::move(the_options)),
      limits(ConnectionLimits::of(options, descriptor_limit())),
      on_loopback(is_loopback_address(options.address)),
      workers(std::move(the_workers)) {}

Connections::Admission Connections::join(const std::shared_ptr<Connection>& connection) {
  std::shared_ptr<Connection> ended;  // goes after the mutex: its last reference may be this one
  const std::lock_guard lock(mutex_);
  if (all_.size() >= limits.serve + limits.extra) return Admission::turn_away;
  const bool fits = all_.size() < limits.serve;
  if (!fits) ended = take_idle();
  all_.emplace(connection.get(), Member{.connection = connection});
  if (ended) ended->make_room();
  return fits || ended ? Admission::serve : Admission::only_at_once;
}

// With the mutex.
std::shared_ptr<Connection> Connections::take_idle() {
  for (Idle* idle : {&served_, &silent_}) {
    while (!idle->empty()) {
      Member& member = all_.at(idle->begin()->second);
      forget_idle(member);
      if (auto connection = member.connection.lock()) return connection;
    }
  }
  return nullptr;
}

void Connections::forget_idle(Member& member) {
  if (member.idle == 0) return;
  if (served_.erase(member.idle) == 0) silent_.erase(member.idle);
  member.idle = 0;
}

void Connections::idle(Connection* connection, bool served_before) {
  const std::lock_guard lock(mutex_);
  Member& member = all_.at(connection);
  forget_idle(member);
  member.idle = ++last_idle_;
  (served_before ? served_ : silent_).emplace(member.idle, connection);
}

void Connections::busy(Connection* connection) {
  const std::lock_guard lock(mutex_);
  forget_idle(all_.at(connection));
}

void Connections::leave(Connection* connection) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(connection);
  if (found == all_.end()) return;  // it was turned away
  forget_idle(found->second);
  all_.erase(found);
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
    for (const auto& [address, member] : all_) {
      if (auto connection = member.connection.lock()) alive.push_back(std::move(connection));
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
