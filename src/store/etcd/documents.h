#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/common/document_loop.h"
#include "store/common/subscribers.h"
#include "store/etcd/gateway.h"
#include "store/etcd/leases.h"
#include "store/etcd/local_view.h"
#include "store/etcd/txn_plan.h"
#include "store/etcd/write_epoch.h"

namespace baton::store::etcd {

// Lock documents in etcd. A name that this process wrote last, or that it knows nothing of, is
// first guessed: then one transaction both proves the guess and makes the change. If the guess was
// wrong, nothing has happened, and what is there is read.
class EtcdDocuments final : public Documents {
 public:
  struct Options {
    std::function<core::StoreTime()> now;
  };
  EtcdDocuments(Gateway& gateway, Leases& leases, Layout layout, Options options);

  Result<Snapshot> read(const Group& group, bool may_guess, Deadline deadline) override;
  Result<Commit> commit(const Step& step, Deadline deadline) override;

  [[nodiscard]] Result<Page<LockInfo>> find(const Query& query, Deadline deadline);

  // Another process says what it has just written. A guess, as good as our own.
  void believe(const std::string& key, const std::string& text, Revision version);

  // Removes the remains of earlier requests. Call it before anything is written.
  [[nodiscard]] Result<void> clear_up(Deadline deadline);

  // Looks at some names, goes round all of them in time, and removes those of which nobody is left.
  // A name that only one holder keeps goes with its lease; this is for the others.
  void sweep(Deadline deadline);

  [[nodiscard]] OwnGrants& own() { return own_; }
  [[nodiscard]] const std::shared_ptr<Subscribers>& subscribers() const { return subscribers_; }

 private:
  using Found = std::vector<std::vector<KeyValue>>;  // one a key
  [[nodiscard]] std::optional<Snapshot> guess(const Group& group);
  [[nodiscard]] Snapshot snapshot(const Group& group, const Found& found);
  [[nodiscard]] Document document(const std::string& key, std::shared_ptr<const Record> record,
                                  core::StoreTime now, bool remember);
  [[nodiscard]] Result<Found> look(const std::vector<std::string>& keys, Deadline deadline);
  // Removes the marks of our own claimants that have ended: a shared lease would keep them. Only
  // while their documents are as they were when they were seen to have ended: a claimant
  // that becomes a holder after all changes its document.
  [[nodiscard]] Result<void> drop_ended(Deadline deadline);
  using Ended = OwnGrants::Ended;
  [[nodiscard]] Result<void> drop(const std::vector<Ended>& ended, core::StoreTime now,
                                  Deadline deadline);
  [[nodiscard]] Result<void> drop_halves(const std::vector<Ended>& ended, core::StoreTime now,
                                         Deadline deadline);
  void ask_again(const std::vector<Ended>& ended, core::StoreTime at);
  [[nodiscard]] Result<Commit> write(const Step& step, const TxnPlan& plan, Deadline deadline);
  void keep(const Step& step, const TxnPlan& plan, Revision version);
  [[nodiscard]] std::map<std::string, std::string> messages(const Step& step,
                                                            const TxnPlan& plan) const;
  void remember(const std::string& key, std::shared_ptr<const Record> record);
  void wake_here(const Step& step);
  using OnName = std::function<bool(const std::string& key, const std::vector<KeyValue>& found)>;
  [[nodiscard]] Result<std::string> visit(std::string from, const std::string& end,
                                          std::size_t pages, const OnName& on_name,
                                          Deadline deadline);

  Gateway& gateway_;
  Leases& leases_;
  const Layout layout_;
  const Options options_;
  const std::string session_;
  WriteEpoch epoch_;
  OwnGrants own_;
  LocalView view_{own_};
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Record>> guesses_;
  std::mutex sweeping_;
  std::string sweep_from_;
};

}  // namespace baton::store::etcd
