#include "harness.h"
#include "store/memory/memory_store.h"

namespace baton::test {
namespace {

class MemoryFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    return store::make_memory_store_at([time] { return time->now(); });
  }
  [[nodiscard]] int model_sequences() const override { return 10'000; }
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<MemoryFactory>(); }

}  // namespace baton::test
