#include "apps/warehouse/observer_type.h"

namespace baton::warehouse {

const Registered inventory({.name = "inventory",
                            .event = "InventoryObservedEvent",
                            .table = "inventory_changes",
                            .columns = {"sku", "quantity"}});

}  // namespace baton::warehouse
