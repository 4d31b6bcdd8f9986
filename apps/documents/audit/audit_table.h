#pragma once

// The tables of the audit service.

#include <optional>
#include <vector>

#include "apps/documents/audit/chain.h"
#include "apps/documents/common/tx.h"

namespace baton::documents::audit {

// False: the event is there already.
bool record(const Tx& tx, const AuditRow& row);

[[nodiscard]] Seal last_seal(const Tx& tx);

// The columns of AuditRow of audit_log a, for SELECT; `row_at` reads them from a column on.
[[nodiscard]] std::string row_columns(const Tx& tx);
[[nodiscard]] AuditRow row_at(const sql::Row& row, std::size_t first = 0);

// The rows that are not in the chain, oldest first.
[[nodiscard]] std::vector<AuditRow> unsealed(const Tx& tx, std::int64_t most);
struct NewSeal {
  std::int64_t audit_id = 0;
  Seal seal;
};
// Continues the chain behind `head`. The rows are not unsealed any more.
void add_seals(const Tx& tx, const Seal& head, const std::vector<NewSeal>& seals,
               const std::string& now);

// When the oldest of them was recorded, as text; empty: there is none.
[[nodiscard]] std::string oldest_unsealed(const Tx& tx);

struct ChainReport {
  Seal head;
  std::int64_t rows = 0;           // of the log
  std::int64_t unsealed = 0;       // of them, not in the chain (yet)
  std::vector<std::string> wrong;  // one line each, the first 20; empty: the chain is whole
};

// Computes every hash anew. `known` is a head that was printed earlier: it must still be there.
[[nodiscard]] ChainReport verify_chain(const Tx& tx, const std::optional<Seal>& known = {});

}  // namespace baton::documents::audit
