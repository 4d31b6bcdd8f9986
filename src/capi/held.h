#pragma once

// What a baton_lease stands for: a lock that is held, or a term of office.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "baton/elector.h"
#include "baton/lease.h"
#include "capi/boundary.h"
#include "capi/event_fd.h"
#include "capi/handles.h"

namespace baton::capi {

class Held {
 public:
  static constexpr Kind kKind = Kind::lease;
  Held() = default;
  virtual ~Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  [[nodiscard]] virtual Lease& lease() = 0;
  [[nodiscard]] virtual bool valid() = 0;
  [[nodiscard]] virtual std::string why_lost() = 0;
  virtual Result<void> release(const ReleaseOptions& options) = 0;

  // Opened when it is first asked for.
  Result<int> fd();

 protected:
  [[nodiscard]] virtual std::stop_token ends() = 0;

 private:
  struct Fire {
    const EventFd* event;
    void operator()() const noexcept { event->fire(); }
  };

  std::mutex mutex_;
  EventFd event_;
  std::optional<std::stop_callback<Fire>> on_end_;
};

baton_lease* new_lease(Lease lease);

// `ended` is called once, when the work of the term has ended.
baton_lease* new_term(Leadership term, std::stop_token ends, std::function<void()> ended);

}  // namespace baton::capi
