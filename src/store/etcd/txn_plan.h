#pragma once

// From a step of the core to one transaction.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/etcd/leases.h"
#include "store/etcd/local_view.h"

namespace baton::store::etcd {

class TxnPlan {
 public:
  TxnPlan(const Step& step, const Layout& layout, const std::string& session);

  [[nodiscard]] bool writes() const { return !names_.empty(); }

  // Keeps the leases alive that the step's answers promise something of, and gets those that new
  // claimants need. False: one of ours has ended, so what was found is no longer true.
  [[nodiscard]] Result<bool> secure_leases(Leases& leases, Deadline deadline);

  // With messages to other processes by channel, if there is room.
  [[nodiscard]] Txn txn(const std::map<std::string, std::string>& messages, LeaseId lease) const;
  [[nodiscard]] bool fits() const;

  // Ours by the mark that is there, or because a request of this step made it.
  [[nodiscard]] bool is_own(const std::string& key, GrantId grant) const;
  [[nodiscard]] const std::set<LeaseId>& leases() const { return used_; }

  // The new record of a written name; nothing if it was removed.
  [[nodiscard]] std::shared_ptr<const Record> written(const std::string& key,
                                                      Revision version) const;
  [[nodiscard]] std::vector<std::string> keys() const;

  // For each channel of another process that holds a name which is written, or is to be woken for
  // it: the document as it will be.
  [[nodiscard]] std::map<std::string, std::map<std::string, std::string>> documents_for_others()
      const;

 private:
  struct Name {
    std::string key;
    const Record* before = nullptr;
    core::NameState after;  // as it is to be written
    bool removed = false;
    std::set<GrantId> new_claimants;
    std::set<GrantId> new_at_least;
    std::set<GrantId> new_tombstones;
  };
  [[nodiscard]] Name name_of(const std::string& key, core::NameState after) const;
  [[nodiscard]] Result<bool> secure(const Request& request, const Reply& reply, Leases& leases,
                                    Deadline deadline);
  [[nodiscard]] Result<bool> secure_marks(const Name& name, Leases& leases, Deadline deadline);
  [[nodiscard]] LeaseId document_lease(const Name& name) const;
  [[nodiscard]] LeaseId lease_of(const Name& name, GrantId grant) const;
  void add_writes(const Name& name, std::vector<Op>& ops) const;
  void add_erasures(const Name& name, std::vector<Op>& ops) const;
  void add_compares(Txn& txn) const;
  [[nodiscard]] const Record& record(const std::string& key) const;

  const Step& step_;
  const Layout& layout_;
  const std::string& session_;
  const Instant started_ = BootClock::now();
  std::vector<Name> names_;
  std::set<GrantId> asking_;
  std::map<GrantId, LeaseId> claimant_leases_;
  std::map<std::pair<std::string, GrantId>, LeaseId> at_least_leases_;
  std::map<GrantId, LeaseId> tombstone_leases_;
  LeaseId moment_ = 0;
  std::set<LeaseId> used_;
};

}  // namespace baton::store::etcd
