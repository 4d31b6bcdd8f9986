#pragma once

// The calls of etcd's v3 JSON gateway that locks need, on whichever endpoint answers.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "http_client/http_client.h"
#include "store/etcd/settings.h"

namespace baton::store::etcd {

using LeaseId = std::int64_t;  // 0: none
using Revision = std::int64_t;

struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;
  Revision changed = 0;
  LeaseId lease = 0;
};

struct Compare {
  enum class What { changed_at, created_at, exists };
  What what = What::changed_at;
  std::string key;
  Revision revision = 0;  // 0: the key is not there
};

struct Op {
  enum class What { put, erase, range };
  What what = What::range;
  std::string key;
  std::string end;  // erase, range: all keys from `key` to before it; empty: `key` alone
  std::string value;
  LeaseId lease = 0;
};

struct Txn {
  std::vector<Compare> compares;
  std::vector<Op> then;
  std::vector<Op> otherwise;
};

inline constexpr std::size_t kMostOps = 128;  // etcd's default for each list of a transaction

struct TxnAnswer {
  enum class Refused { no, lease_not_found, too_large };
  Refused refused = Refused::no;
  bool succeeded = false;
  Revision revision = 0;
  std::vector<std::vector<KeyValue>> ranges;  // of each range among the operations that ran
};

// Thread-safe. Errors tell whether a transaction may have taken effect. Everything else may happen
// twice without harm, reads and leases, and is repeated on the next endpoint.
class Gateway {
 public:
  explicit Gateway(Settings settings);

  [[nodiscard]] Result<TxnAnswer> txn(const Txn& txn, Deadline deadline);
  struct RangeAnswer {
    std::vector<KeyValue> found;
    bool more = false;
  };
  [[nodiscard]] Result<RangeAnswer> range(const std::string& key, const std::string& end,
                                          std::size_t limit, Deadline deadline);

  struct LeaseAnswer {
    LeaseId id = 0;
    std::chrono::seconds ttl{0};
  };
  [[nodiscard]] Result<LeaseAnswer> grant_lease(std::chrono::seconds ttl, Deadline deadline);
  // A ttl of zero: the lease is gone.
  [[nodiscard]] Result<LeaseAnswer> keep_alive(LeaseId id, Deadline deadline);
  [[nodiscard]] Result<void> revoke_lease(LeaseId id, Deadline deadline);

  // Tells of every put to one of the keys until stopped, or something goes wrong. `on_ready` when
  // everything from then on is told.
  using OnPut = std::function<void(const KeyValue&)>;
  [[nodiscard]] Result<void> watch(const std::vector<std::string>& keys,
                                   const std::function<void()>& on_ready, const OnPut& on_put,
                                   std::stop_token stop);

  struct Health {
    std::size_t members = 0;
    bool full = false;     // the space quota is used up
    bool corrupt = false;  // members disagree about what they keep
  };
  [[nodiscard]] Result<Health> health(Deadline deadline);

  // Of the member that answers.
  [[nodiscard]] Result<std::string> version(Deadline deadline);

  // Lines about the cluster for people.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> describe(
      Deadline deadline);

 private:
  enum class Kind { repeatable, writes };
  struct Said;  // what etcd said instead of an answer
  [[nodiscard]] Result<std::string> call(const std::string& path, const std::string& body,
                                         Kind kind, Deadline deadline, Said* said = nullptr);
  [[nodiscard]] Result<http_client::HttpRequest> request_to(const std::string& endpoint,
                                                            const std::string& path,
                                                            const std::string& body,
                                                            Deadline deadline);
  [[nodiscard]] Result<std::string> token(const std::string& endpoint, Deadline deadline);
  void forget_token(const std::string& used);
  void leave(std::size_t endpoint);

  const Settings settings_;
  http_client::HttpClient http_;
  std::atomic<std::size_t> current_{0};
  std::mutex mutex_;
  std::string token_;
};

}  // namespace baton::store::etcd
