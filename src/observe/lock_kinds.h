#pragma once

// The series of each kind of lock: a subject and a predicate.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "baton/metrics.h"
#include "baton/name.h"
#include "baton/result.h"

namespace baton::observe {

enum class Failure : std::uint8_t {
  contention,  // somebody else had it
  api_error,   // the store failed
  superseded,
  denied,
  cancelled,
  invalid,  // the request itself
};
inline constexpr std::array<std::string_view, 6> kFailures = {
    "contention", "api_error", "superseded", "denied", "cancelled", "invalid"};

[[nodiscard]] Failure failure_of(Code code);

struct LockKind {
  LockKind(Metrics& metrics, const std::string& what, const std::string& action);

  std::string subject;
  std::string predicate;
  Counter attempts;
  Counter successes;
  std::vector<Counter> failures;  // by Failure
  Histogram acquired_at_once;
  Histogram acquired_after_waiting;
  Histogram ttl;
  Gauge active;
  Gauge queue;
  Counter expired;
  Counter refused;
  Counter releases;
  Counter release_failures;
  Histogram hold;

 private:
  LockKind(Metrics& metrics, const std::string& what, const std::string& action,
           const Labels& kind);
};

// Looking one up takes no lock and makes no string: a new kind is put into a copy of the table. The
// old tables are kept, since somebody may be reading them; there are no more of them than kinds.
class LockKinds {
 public:
  LockKinds(std::shared_ptr<Metrics> metrics, std::size_t most);

  const LockKind& of(const LockName& name);
  const LockKind& other();  // made when first needed

 private:
  using Name = std::pair<std::string_view, std::string_view>;
  struct Hash {
    std::size_t operator()(const Name& name) const {
      const std::hash<std::string_view> hash;
      return hash(name.first) * 31 + hash(name.second);
    }
  };
  using Table = std::unordered_map<Name, const LockKind*, Hash>;

  const LockKind& add(const LockName& name);

  const std::shared_ptr<Metrics> metrics_;
  const std::size_t most_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const LockKind>> kinds_;
  std::vector<std::unique_ptr<const Table>> tables_;
  std::atomic<const Table*> table_;
  std::once_flag other_once_;
  std::unique_ptr<const LockKind> other_;
};

}  // namespace baton::observe
