#include "apps/documents/audit/sealer.h"

#include <condition_variable>
#include <mutex>

#include "apps/documents/audit/audit_table.h"
#include "sql/transaction.h"

namespace baton::documents::audit {
namespace {

constexpr std::int64_t kBatch = 200;
constexpr Millis kPause{200};  // how long a row waits for its seal when there is little to do

// How many it has sealed.
Result<std::size_t> seal_batch(sql::Pool& database, const Leadership& leadership) {
  auto session = database.take();
  if (!session) return session.error();
  // Without the write lock of SQLite, which a transaction takes at once.
  const auto any = (*session)->query("SELECT 1 FROM audit_unsealed LIMIT 1");
  if (!any) return any.error();
  if (any->empty()) return std::size_t{0};
  auto transaction = sql::Transaction::begin(**session);
  if (!transaction) return transaction.error();
  if (auto alone = transaction->fence(leadership); !alone) return alone.error();
  std::vector<NewSeal> seals;
  try {
    const Tx tx(*transaction);
    const Seal head = last_seal(tx);
    for (const AuditRow& row : unsealed(tx, kBatch)) {
      seals.push_back(
          {.audit_id = row.id, .seal = seal(seals.empty() ? head : seals.back().seal, row)});
    }
    add_seals(tx, head, seals, now_text());
  } catch (const SqlError& failed) {
    return failed.error;
  }
  if (seals.empty()) return std::size_t{0};
  if (auto committed = transaction->commit(); !committed) return committed.error();
  return seals.size();
}

}  // namespace

void seal_while_leader(sql::Pool& database, const observe::Logger& log, Leadership& leadership,
                       const std::stop_token& stop) {
  log.info("SEALING_STARTED", {{"term", std::to_string(leadership.term())}});
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    const auto sealed = seal_batch(database, leadership);
    if (!sealed) log.warn("SEALING_FAILED", {{"reason", sealed.error().message}});
    if (sealed && *sealed == static_cast<std::size_t>(kBatch)) continue;
    signal.wait_for(lock, stop, kPause, [] { return false; });
  }
}

}  // namespace baton::documents::audit
