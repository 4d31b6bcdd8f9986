#pragma once

#include <vector>

#include "events/lab.h"
#include "harness/report.h"

namespace baton::bench {

std::vector<Figure> rabbitmq_publish(Lab& lab);

}  // namespace baton::bench
