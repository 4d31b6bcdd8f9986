#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/documents/common/tx.h"
#include "apps/documents/operate/places.h"
#include "baton/broker.h"

namespace baton::documents {

// How a platform is doing, for people.
struct Figures {
  struct Service {
    std::string name;
    std::optional<std::uint64_t> queued;  // in its queue; none: it has none, or the broker is away
    std::optional<std::int64_t> to_publish;  // in its outbox; none: it has none
    std::int64_t retrying = 0, dead = 0;     // in its inbox
  };
  std::vector<Service> services;  // as all_services()
  std::map<std::string, std::int64_t> by_status;
  std::int64_t events = 0, sealed = 0, notifications = 0;
  std::string broker_trouble;  // empty: the broker answers

  [[nodiscard]] std::int64_t count(const std::string& status) const;
  [[nodiscard]] std::int64_t final() const;  // documents that are in a final state
  [[nodiscard]] std::string line() const;
};

// Reads them again and again, with sessions that it keeps.
class FiguresReader {
 public:
  explicit FiguresReader(Places places) : places_(std::move(places)) {}
  [[nodiscard]] Result<Figures> read();

 private:
  struct Session {
    std::unique_ptr<sql::Connection> connection;
    bool has_outbox = false;
  };
  Session& session_of(std::string_view service);
  void read_service(std::string_view service, Figures& figures);
  void read_queues(Figures& figures);

  const Places places_;
  std::map<std::string, Session, std::less<>> sessions_;
  std::shared_ptr<Broker> broker_;
};

}  // namespace baton::documents
