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
  std::size_t sealed = 0;
  try {
    const Tx tx(*transaction);
    Seal head = last_seal(tx);
    const std::string now = now_text();
    for (const AuditRow& row : unsealed(tx, kBatch)) {
      const Seal next = seal(head, row);
      add_seal(tx, head, next, row.id, now);
      head = next;
      ++sealed;
    }
  } catch (const SqlError& failed) {
    return failed.error;
  }
  if (sealed == 0) return sealed;
  if (auto committed = transaction->commit(); !committed) return committed.error();
  return sealed;
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
