#include "apps/warehouse/observer_type.h"

namespace baton::warehouse {

const Registered returns({.name = "returns",
                          .event = "ReturnObservedEvent",
                          .table = "returned_items",
                          .columns = {"item", "reason"}});

}  // namespace baton::warehouse
