#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "baton/partitions.h"

namespace baton::partitions {

enum class Ending : std::uint8_t {
  returned,     // by itself
  failed,       // it threw
  handed_over,  // a member below its quota waits for the partition
  stopped,      // this replica leaves
  lost,         // the lease has ended: not renewed in time, or revoked
};

// One lease of a partition and the work under it, on a thread of its own. The first reason to end
// it counts. The lease is released when the work has returned, on the same thread.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(std::string set, std::size_t number, Lease lease, Clock& clock);

  // `then` is the last thing that the thread does; it gets what the work threw, or nothing. If no
  // thread can be started, the lease is released and `then` gets the reason before this returns.
  void start(const Partitions::Work& work, const void* member, bool can_transfer,
             const std::function<void(std::string threw)>& then);
  void join();

  void end(Ending ending, std::string to = {});

  [[nodiscard]] const std::string& set() const { return set_; }
  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] Lease& lease() { return lease_; }
  [[nodiscard]] Instant began() const { return began_; }

  // Nothing while it goes on.
  [[nodiscard]] std::optional<Ending> ending() const;
  [[nodiscard]] Instant ended_at() const;
  [[nodiscard]] std::string why() const;

  // Of which Member the calling thread does the work; nullptr if of none.
  [[nodiscard]] static const void* member_of_this_thread();

 private:
  std::string perform(const Partitions::Work& work);
  void release(bool can_transfer);

  const std::string set_;
  const std::size_t number_;
  Lease lease_;
  Clock& clock_;
  const Instant began_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::optional<Ending> ending_;
  Instant ended_at_{};
  std::string to_;
  std::thread thread_;
};

}  // namespace baton::partitions
