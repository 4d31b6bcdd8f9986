#pragma once

#include <vector>

#include "events/lab.h"
#include "harness/report.h"

namespace baton::bench {

struct Amounts {
  int documents = 4'000;  // that each stage gets alone
  int seconds = 15;       // of the whole pipeline, and of half its rate
};

// Stages alone, the pipeline, its latency at half the rate, its memory.
std::vector<Figure> pipeline(Lab& lab, const Amounts& amounts);
std::vector<Figure> submit(Lab& lab, const Amounts& amounts);

}  // namespace baton::bench
