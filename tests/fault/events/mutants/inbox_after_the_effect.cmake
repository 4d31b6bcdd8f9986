# The ledger is written behind the effect, in a transaction of its own.
set(FILE src/inbox/attempt.cc)
set(REPLACE_1 [[std::sort(entered->fresh.begin(), entered->fresh.end());]])
set(WITH_1 [[std::sort(entered->fresh.begin(), entered->fresh.end());
        for (const auto& id : entered->fresh) {
          if (auto left = handlers_->tables.leave(*transaction, id); !left) return fail(left.error());
        }]])
set(REPLACE_2 [[        progress.committed();]])
set(WITH_2 [[        if (auto later = sql::Transaction::begin(*database_)) {
          std::vector<std::string> ids;
          for (const auto& one : batch) ids.push_back(one.sent.event.id);
          if (auto entered = handlers_->tables.enter(*later, ids, Outcome::done); !entered) {
            return fail(entered.error());
          }
          if (auto committed = later->commit(); !committed) return fail(committed.error());
        }
        progress.committed();]])
