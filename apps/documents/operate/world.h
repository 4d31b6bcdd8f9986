#pragma once

// What `documents verify` looks at: the rows of all five databases, as they are.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/documents/audit/audit_table.h"
#include "apps/documents/operate/places.h"

namespace baton::documents {

struct World {
  struct Document {
    std::string owner;
    std::string status;
    std::string stage;  // of FAILED
    bool operator==(const Document&) const = default;
  };
  struct Emitted {
    std::string service, event_id, type, document, status;
    std::string cause;   // the event that led to it
    std::string digest;  // of its payload
    std::string facts;   // what its payload says of the columns of a row, see World::facts
  };
  struct Trouble {  // a row of an inbox
    std::string service, status, event_id, type, document, error;
  };
  struct Recorded {
    std::string event_id, type, document;
    std::string digest;
    std::string occurred_at;
    bool old = false;  // the outbox may have forgotten it
  };
  struct Told {
    std::string event_id, channel, user;
    std::string document;
    bool operator<(const Told& other) const {
      return std::tie(event_id, channel, user) <
             std::tie(other.event_id, other.channel, other.user);
    }
  };
  struct Decided {  // a row of a ledger
    std::string service, event_id, outcome;
  };

  struct Preference {
    bool on = true;
    std::string updated_at;  // RFC 3339, as Recorded::occurred_at
  };

  std::map<std::string, Document> documents;    // by id
  std::map<std::string, std::string> verdicts;  // of documents: VALIDATED or REJECTED
  std::set<std::string> enriched;               // documents
  std::vector<Emitted> emitted;                 // all outboxes
  std::vector<Trouble> troubles;                // all inboxes
  std::vector<Decided> decided;                 // all ledgers
  std::vector<Recorded> recorded;               // the audit log
  audit::ChainReport chain;
  std::vector<Told> told;
  std::map<std::pair<std::string, std::string>, Preference> preferences;  // user, channel
  std::optional<std::vector<std::string>> spooled;                        // idempotency keys
  // What the rows of a document say that an event of this type must say: document, type.
  std::map<std::pair<std::string, std::string>, std::string> facts;
};

[[nodiscard]] Result<World> read_world(const Places& places);

}  // namespace baton::documents
