#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "store/postgres_advisory/server_queries.h"
#include "store/postgres_advisory/session.h"

namespace baton::store::postgres_advisory {

// A grant of this process and its session.
//
//   waiting ──the server has handed it over, its term is written──▶ handed ──claimed──▶ held
struct GrantEntry {
  LockRef lock;
  core::Holder holder;    // who it is for; token and times once it holds
  bool holds = false;     // handed or held
  bool has_lock = false;  // waiting: the session has the lock, but somebody's time is not over yet
  std::uint64_t turn = 0;
  StoreTime stale{0};
  Millis claim_within{0};
  std::unique_ptr<Session> session;

  // When it ends by itself.
  [[nodiscard]] StoreTime over() const { return holds ? holder.expires : stale; }
};

// All grants and waiters of this process, by name.
class SessionTable {
 public:
  struct Name {
    std::vector<std::unique_ptr<GrantEntry>> entries;  // by turn
    std::vector<core::Tombstone> tombstones;
    bool changed = false;  // since the server was last asked who has the lock now
  };

  [[nodiscard]] GrantEntry* find(const std::string& key, GrantId grant) const;
  Name& at(const std::string& key) { return names_[key]; }
  [[nodiscard]] const std::map<std::string, Name>& names() const { return names_; }
  [[nodiscard]] std::size_t waiting() const;

  GrantEntry& add(std::unique_ptr<GrantEntry> entry);
  std::unique_ptr<GrantEntry> remove(const GrantEntry& entry);
  void tidy(const std::string& key);  // forgets a name without anything

  // Names that were not free when they were last asked for: they are looked at before they are
  // tried again.
  void mark_busy(const std::string& key);
  void mark_free(const std::string& key) { busy_.erase(key); }
  [[nodiscard]] bool may_be_free(const std::string& key) const;

  // The name as the core would have it: ours, and what else the server shows.
  [[nodiscard]] core::NameState name_state(const std::string& key, const ServerView& seen) const;

 private:
  std::map<std::string, Name> names_;
  std::set<std::string> busy_;
  std::uint64_t last_turn_ = 0;
};

}  // namespace baton::store::postgres_advisory
