#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/backoff.h"
#include "store/common/document_loop.h"
#include "store/kubernetes/listener.h"
#include "store/kubernetes/name_cache.h"
#include "store/kubernetes/schema_version.h"

namespace baton::store::kubernetes {

// One name as the document loop reads and writes it, for one run of the loop. What the cache has is
// a guess that a write proves, so that a free lock is taken by one create and a held one renewed by
// one update.
class NameDocuments final : public Documents {
 public:
  NameDocuments(std::string key, LeaseApi& api, NameCache& cache, SchemaVersion& schema,
                const Listener& listener)
      : key_(std::move(key)), api_(api), cache_(cache), schema_(schema), listener_(listener) {}

  Result<Snapshot> read(const Group& group, bool may_guess, Deadline deadline) override;
  Result<Commit> commit(const Step& step, Deadline deadline) override;

  // After the run: whom to wake, the schema version that was worked by, and whether it was changed.
  [[nodiscard]] std::vector<core::Wake>& wakes() { return wakes_; }
  [[nodiscard]] std::int64_t schema_seen() const { return schema_seen_; }
  [[nodiscard]] bool schema_changed() const { return schema_changed_; }

 private:
  [[nodiscard]] Result<void> look(Deadline deadline);
  [[nodiscard]] Result<void> look_at_schema(const Group& group, bool may_guess, Deadline deadline);
  [[nodiscard]] Snapshot snapshot(const Group& group) const;
  [[nodiscard]] Result<Written> write(const core::NameState& state,
                                      const std::vector<core::Wake>& wakes, CachedName& next,
                                      const ClockReading& now, Deadline deadline);
  [[nodiscard]] bool believed(const Step& step) const;
  [[nodiscard]] bool can_wait(const Step& step) const;
  void keep_for_later(const core::NameState& state);
  [[nodiscard]] Commit lost_the_race(const Step& step, Deadline deadline);
  [[nodiscard]] Result<Commit> pass_through(const Step& step, Deadline deadline);
  void remember(const Step& step, std::shared_ptr<CachedName> next, LeaseObject lease);

  const std::string key_;
  LeaseApi& api_;
  NameCache& cache_;
  SchemaVersion& schema_;
  const Listener& listener_;
  std::shared_ptr<const CachedName> known_;  // what the last reading found
  std::int64_t schema_seen_ = 0;
  bool schema_changed_ = false;
  std::vector<core::Wake> wakes_;
  int conflicts_ = 0;
  core::Backoff backoff_{Millis(4), Millis(250)};
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace baton::store::kubernetes
