#include "apps/warehouse/observer_type.h"

namespace baton::warehouse {

const Registered wes({.name = "wes",
                      .event = "WesTaskPolledEvent",
                      .table = "wes_tasks",
                      .columns = {"task", "status"}});

}  // namespace baton::warehouse
