#include "harness.h"

namespace baton::test {

StoreFactory& factory() {
  static const std::unique_ptr<StoreFactory> made = make_factory();
  return *made;
}

}  // namespace baton::test
