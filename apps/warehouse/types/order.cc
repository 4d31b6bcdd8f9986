#include "apps/warehouse/observer_type.h"

namespace baton::warehouse {

const Registered order({.name = "order",
                        .event = "NewOrderObservedEvent",
                        .table = "orders",
                        .columns = {"customer", "total"}});

}  // namespace baton::warehouse
