#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "store/kubernetes/api_server.h"
#include "store/kubernetes/lease_object.h"

namespace baton::store::kubernetes {

// How both clocks are read; a test gives its own.
struct Clocks {
  std::function<core::StoreTime()> here;
  std::function<ServerTime()> server;  // empty: by the dates of the server's answers
};

// The outcome of a write.
struct Written {
  enum class Fate { done, conflict, too_large };  // conflict: somebody else was there before
  Fate fate = Fate::conflict;
  LeaseObject lease;  // as it is now; of a create or an update that is done
};

struct LeaseList {
  std::vector<LeaseObject> leases;
  std::string next;  // give it to go on; empty at the end
};

struct WatchEvent {
  enum class Kind { changed, deleted, bookmark, gone, other };  // gone: start over
  Kind kind = Kind::other;
  std::uint64_t version = 0;
  std::string name;       // of the Lease
  std::string wake;       // as in LeaseObject
  std::string_view text;  // all of it, for parse_lease
};

// The Leases of one namespace on the API server. Thread-safe; every call returns by its deadline,
// and Error::in_doubt says whether a write may have taken effect all the same. Waits when the
// server asks for it. No write takes effect after its deadline, because the server is told of it.
class LeaseApi {
 public:
  LeaseApi(const Cluster& cluster, Clocks clocks);

  [[nodiscard]] Result<std::optional<LeaseObject>> get(const std::string& name, Deadline deadline);
  [[nodiscard]] Result<Written> create(const std::string& body, Deadline deadline);
  [[nodiscard]] Result<Written> update(const std::string& name, const std::string& body,
                                       Deadline deadline);
  [[nodiscard]] Result<Written> remove(const LeaseObject& lease, Deadline deadline);
  [[nodiscard]] Result<LeaseList> list(const std::string& from, Deadline deadline);

  // Events after `version` (0: everything there is, and then what changes), until the server ends
  // the stream or `stop` is requested.
  using OnEvent = std::function<void(const WatchEvent&)>;
  [[nodiscard]] Result<void> watch(std::uint64_t version, const OnEvent& on_event,
                                   std::stop_token stop);

  [[nodiscard]] Result<std::string> server_version(Deadline deadline);

  // Whether this user has that right on the Leases of the namespace.
  [[nodiscard]] Result<bool> may(const char* verb, Deadline deadline);

  [[nodiscard]] ClockReading now() const;

 private:
  [[nodiscard]] Result<Written> written(const Result<http_client::HttpResponse>& response);
  void note_date(const http_client::HttpResponse& response);

  const std::string leases_;  // the path of all Leases
  const Clocks clocks_;
  ServerClock server_clock_;
  ApiServer server_;
};

}  // namespace baton::store::kubernetes
