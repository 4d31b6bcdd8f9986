#pragma once

#include <vector>

#include "events/lab.h"
#include "harness/report.h"

namespace baton::bench {

std::vector<Figure> rabbitmq_publish(Lab& lab);
std::vector<Figure> relay_rate(Lab& lab);

}  // namespace baton::bench
