# The ledger: not written, or written behind the effect in a transaction of its own. Giving up: the
# hook is committed before the dead letter.
set(FILE src/inbox/attempt.cc)
set(REPLACE_1 [[#include "inbox/session.h"]])
set(WITH_1 [[#include "inbox/session.h"

#include "documents/flaw.h"

using baton::test::die_at;
using baton::test::flawed;]])
set(REPLACE_2 [[std::sort(entered->fresh.begin(), entered->fresh.end());]])
set(WITH_2 [[std::sort(entered->fresh.begin(), entered->fresh.end());
        for (const auto& id : entered->fresh) {
          if (!flawed("no_inbox") && !flawed("inbox_after_the_effect")) break;
          if (auto left = handlers_->tables.leave(*transaction, id); !left) return fail(left.error());
        }]])
set(REPLACE_3 [[        if (auto committed = transaction->commit(); !committed) {
          return fail_commit(committed.error());
        }
        progress.committed();]])
set(WITH_3 [[        die_at("before_the_commit");
        if (auto committed = transaction->commit(); !committed) {
          return fail_commit(committed.error());
        }
        die_at("after_the_commit");
        if (flawed("inbox_after_the_effect")) {
          auto later = sql::Transaction::begin(*database_);
          if (!later) return fail(later.error());
          std::vector<std::string> ids;
          for (const auto& one : batch) ids.push_back(one.sent.event.id);
          if (auto entered = handlers_->tables.enter(*later, ids, Outcome::done); !entered) {
            return fail(entered.error());
          }
          if (auto committed = later->commit(); !committed) return fail(committed.error());
        }
        progress.committed();]])
set(REPLACE_4 [[  auto stored = handlers_->tables.update(*transaction, kept.event_id, decision, error);
  if (!stored) return fail(stored.error());
  stored = transaction->commit();]])
set(WITH_4 [[  const bool apart = decision.run_hook && flawed("gives_up_in_two_steps");
  if (apart) {
    if (auto early = transaction->commit(); !early) return fail(early.error());
  }
  if (decision.run_hook) die_at("behind_the_hook");
  auto later = apart ? sql::Transaction::begin(*database_) : std::move(transaction);
  if (!later) return fail(later.error());
  auto stored = handlers_->tables.update(*later, kept.event_id, decision, error);
  if (!stored) return fail(stored.error());
  stored = later->commit();]])
