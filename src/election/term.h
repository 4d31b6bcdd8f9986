#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "baton/clock.h"
#include "baton/lease.h"

namespace baton::election {

enum class Ending : std::uint8_t {
  returned,     // the work returned by itself
  failed,       // it threw
  resigned,     // somebody in this process asked for it
  transferred,  // the same, with a successor
  unfit,        // the health check has failed
  stopped,      // the elector was stopped
  lost,         // the lease has ended: not renewed in time, or revoked
};

// One lease and the work under it. The first reason to end it counts.
class Term {
 public:
  using OnEnd = std::function<void()>;

  // `on_end` is called once, after the stop token has fired, on the thread that ended the term.
  Term(std::string election, Lease lease, Clock& clock, OnEnd on_end);

  [[nodiscard]] const std::string& election() const { return election_; }
  [[nodiscard]] Lease& lease() { return lease_; }
  [[nodiscard]] const Lease& lease() const { return lease_; }
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }
  [[nodiscard]] Instant began() const { return began_; }

  void end(Ending ending, std::string successor = {});

  // Nothing while the term lasts.
  [[nodiscard]] std::optional<Ending> ending() const;
  [[nodiscard]] Instant ended_at() const;
  [[nodiscard]] std::string successor() const;
  [[nodiscard]] std::string why() const;
  [[nodiscard]] bool valid() const { return !ending() && lease_.valid(); }

 private:
  const std::string election_;
  Lease lease_;
  Clock& clock_;
  const OnEnd on_end_;
  const Instant began_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::optional<Ending> ending_;
  Instant ended_at_{};
  std::string successor_;
};

}  // namespace baton::election
