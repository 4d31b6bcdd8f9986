#pragma once

#include <string>
#include <vector>

#include "harness/report.h"
#include "locks/lab.h"

namespace baton::bench {

std::vector<Figure> postgres_one_caller(Lab& lab);
std::vector<Figure> postgres_many_callers(Lab& lab);
std::vector<Figure> postgres_busy(Lab& lab);
std::vector<Figure> sqlite_one_caller(Lab& lab);
std::vector<Figure> sqlite_many_callers(Lab& lab);
std::vector<Figure> memory_callers(Lab& lab);
std::vector<Figure> metrics_cost(Lab& lab);
std::vector<Figure> handover(Lab& lab);
std::vector<Figure> renewals(Lab& lab);
std::vector<Figure> many_names(Lab& lab);

// Programs that rows run in processes of their own: this program again, with another first word.
int run_waiters(const std::vector<std::string>& words);
int run_holder(const std::vector<std::string>& words);

}  // namespace baton::bench
