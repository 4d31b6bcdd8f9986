#include "partitions/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace baton::partitions {
namespace {

class Decision {
 public:
  explicit Decision(const View& view) : view_(view), members_(everybody(view)) {
    for (std::size_t i = 0; i < view_.partitions.size(); ++i) {
      const Seen& seen = view_.partitions[i];
      if (seen.own == Own::holding) ++holding_;
      if (seen.own == Own::taking) ++taking_;
      if (is_others(seen)) held_by_[seen.holder].push_back(i);
      if (is_others(seen) && seen.own == Own::waiting) ++asked_of_[seen.holder];
    }
  }

  Plan make() {
    hand_over();
    if (view_.may_take) take();
    withdraw();
    if (view_.may_take) wait();
    return std::move(plan_);
  }

 private:
  static std::vector<std::string> everybody(const View& view) {
    std::set<std::string> all(view.members.begin(), view.members.end());
    all.insert(view.self);
    return {all.begin(), all.end()};
  }

  // Held by somebody else. Our own name on a partition that we do not know we hold is a grant that
  // is on its way to us or back from us.
  [[nodiscard]] bool is_others(const Seen& seen) const {
    return !seen.holder.empty() && seen.holder != view_.self && seen.own != Own::holding &&
           seen.own != Own::draining;
  }
  [[nodiscard]] bool is_free(const Seen& seen) const {
    return seen.holder.empty() && seen.own == Own::none;
  }
  [[nodiscard]] bool is_member(const std::string& node) const {
    return std::binary_search(members_.begin(), members_.end(), node);
  }
  [[nodiscard]] std::size_t count() const { return view_.partitions.size(); }
  [[nodiscard]] std::size_t rank_of(const std::string& node) const {
    const auto at = std::lower_bound(members_.begin(), members_.end(), node);
    return static_cast<std::size_t>(std::distance(members_.begin(), at));
  }

  // A holder that is no member is leaving or dead, and should have none.
  [[nodiscard]] std::size_t quota_of(const std::string& node) const {
    return is_member(node) ? quota(rank_of(node), members_.size(), count()) : 0;
  }
  [[nodiscard]] std::size_t excess_of(const std::string& node) const {
    const auto held = held_by_.find(node);
    const std::size_t has = held == held_by_.end() ? 0 : held->second.size();
    return has - std::min(has, quota_of(node));
  }

  // The newest grants first: partitions that a member took beyond its quota move on, and those that
  // it has had for long stay.
  [[nodiscard]] std::vector<std::size_t> latest_first(std::vector<std::size_t> some) const {
    std::stable_sort(some.begin(), some.end(), [this](std::size_t a, std::size_t b) {
      return view_.partitions[a].token > view_.partitions[b].token;
    });
    return some;
  }

  void hand_over() {
    const std::size_t mine = quota_of(view_.self);
    std::size_t surplus = holding_ - std::min(holding_, mine);
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < count(); ++i) {
      if (view_.partitions[i].own == Own::holding) held.push_back(i);
    }
    for (const std::size_t i : latest_first(std::move(held))) {
      if (surplus == 0) break;
      for (const std::string& waiter : view_.partitions[i].waiters) {
        if (waiter == view_.self || !is_member(waiter)) continue;
        plan_.hand_over.push_back({i, waiter});
        --surplus;
        break;
      }
    }
  }

  // Members begin at different places, so that they seldom try the same partition.
  void take() {
    const std::size_t mine = quota_of(view_.self);
    missing_ = mine - std::min(mine, holding_ + taking_);
    const std::size_t first = rank_of(view_.self) * count() / members_.size();
    for (std::size_t step = 0; step < count(); ++step) {
      const std::size_t i = (first + step) % count();
      const Seen& seen = view_.partitions[i];
      if (!is_free(seen)) continue;
      if (missing_ > 0) {
        --missing_;
      } else if (seen.free_for < kFreeForAnyone) {
        const Millis left = kFreeForAnyone - seen.free_for;
        plan_.look_again_in = std::min(left, plan_.look_again_in.value_or(left));
        continue;
      }
      plan_.take.push_back(i);
    }
  }

  // Keeps the waits that a holder will serve, as far as they are needed, and withdraws the others.
  void withdraw() {
    for (std::size_t i = 0; i < count(); ++i) {
      const Seen& seen = view_.partitions[i];
      if (seen.own != Own::waiting) continue;
      const bool others = is_others(seen);
      const bool served = !others || asked_of_[seen.holder] <= excess_of(seen.holder);
      if (missing_ > 0 && served) {
        --missing_;
        continue;
      }
      plan_.withdraw.push_back(i);
      if (others) --asked_of_[seen.holder];
    }
  }

  // Asks each holder for no more than it has above its quota, and prefers partitions that nobody
  // else waits for.
  void wait() {
    std::vector<std::size_t> candidates;
    for (const auto& [holder, held] : held_by_) {
      const auto latest = latest_first(held);
      const auto last = latest.begin() + static_cast<std::ptrdiff_t>(excess_of(holder));
      std::copy_if(latest.begin(), last, std::back_inserter(candidates),
                   [this](std::size_t i) { return view_.partitions[i].own == Own::none; });
    }
    std::stable_sort(candidates.begin(), candidates.end(), [this](std::size_t a, std::size_t b) {
      return preference(a) < preference(b);
    });
    for (const std::size_t i : candidates) {
      const std::string& holder = view_.partitions[i].holder;
      if (missing_ == 0) break;
      if (asked_of_[holder] >= excess_of(holder)) continue;
      plan_.wait_for.push_back(i);
      ++asked_of_[holder];
      --missing_;
    }
  }

  [[nodiscard]] std::tuple<std::size_t, std::size_t> preference(std::size_t i) const {
    const Seen& seen = view_.partitions[i];
    return {seen.waiters.size(), count() - excess_of(seen.holder)};
  }

  const View& view_;
  const std::vector<std::string> members_;  // sorted, with ourselves
  std::size_t holding_ = 0;
  std::size_t taking_ = 0;
  std::size_t missing_ = 0;  // to our quota, beyond what is under way
  std::map<std::string, std::vector<std::size_t>> held_by_;
  std::map<std::string, std::size_t> asked_of_;  // by us
  Plan plan_;
};

}  // namespace

std::size_t quota(std::size_t rank, std::size_t members, std::size_t count) {
  return count / members + (rank < count % members ? 1 : 0);
}

Plan decide(const View& view) { return Decision(view).make(); }

}  // namespace baton::partitions
