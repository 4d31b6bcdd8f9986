#pragma once

#include <string>
#include <vector>

#include "events/lab.h"
#include "harness/report.h"

namespace baton::bench {

std::vector<Figure> rabbitmq_publish(Lab& lab);
std::vector<Figure> relay_rate(Lab& lab);
std::vector<Figure> relay_backlog(Lab& lab);
std::vector<Figure> relay_pinned(Lab& lab);
std::vector<Figure> relay_idle(Lab& lab);
std::vector<Figure> outbox_add(Lab& lab);
std::vector<Figure> consumer_rate(Lab& lab);
std::vector<Figure> embedded_publish(Lab& lab);
std::vector<Figure> embedded_consumers(Lab& lab);

// One of several processes that consume: this program again, with another first word.
int run_consumer(const std::vector<std::string>& words);

}  // namespace baton::bench
