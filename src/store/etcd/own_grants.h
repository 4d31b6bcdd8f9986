#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "core/lock_table.h"

namespace baton::store::etcd {

// When this process's own claimants end, exactly, by its own clock. Renewing only changes this and
// the lease; the documents keep the times of when they were last written.
class OwnGrants {
 public:
  struct Times {
    std::optional<core::StoreTime> holds_until;
    std::optional<core::StoreTime> waits_until;
    std::optional<core::StoreTime> converts_until;
    std::optional<core::StoreTime> entombed_until;

    [[nodiscard]] bool any() const;
    [[nodiscard]] core::StoreTime end() const;
    bool operator==(const Times&) const = default;
  };

  [[nodiscard]] std::optional<Times> find(const std::string& key, GrantId grant) const;

  // What a step changed of a grant: only the times that it made others. `as_of` is the version of
  // the document that the step wrote, or only found. If it wrote it, a time that is no more is
  // forgotten. A step of a version that somebody else has got beyond takes nothing back, and no
  // renewal takes back a longer one beside it.
  struct Change {
    Times before;
    Times after;
    std::int64_t as_of = 0;
    bool written = false;
  };
  void change(const std::string& key, GrantId grant, const Change& change);

  struct Ended {
    std::string key;
    GrantId grant;
    Times times;
  };
  // Some that have ended; none of a name that is in use. They stay known as ended, and each is
  // given to one caller only, who says then what became of it.
  [[nodiscard]] std::vector<Ended> take_ended(core::StoreTime now, std::size_t most);
  void forget(const Ended& ended);  // unless it has begun again meanwhile
  void ask_again(const Ended& ended, core::StoreTime at);

  [[nodiscard]] bool empty() const;

  // Names in use by a request on its way, until it is destroyed.
  class Use {
   public:
    Use(OwnGrants& grants, const std::vector<std::string>& keys);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    OwnGrants& grants_;
    const std::vector<std::string>& keys_;
  };

 private:
  struct Known {
    Times times;
    std::int64_t as_of = 0;
  };
  using Due = std::tuple<core::StoreTime, std::string, GrantId>;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, GrantId>, Known> grants_;
  std::map<std::string, int> in_use_;
  // An entry may be early, and is then put back; or for nothing.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace baton::store::etcd
