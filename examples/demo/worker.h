#pragma once

#include <string>

namespace demo {

inline constexpr int kUnits = 60;

// One replica: takes the first unit that is neither done nor locked, works on it, writes it down;
// until nothing is left. It never looks whether its lease is still good: the fence has to.
int work(const std::string& directory, const std::string& name);

}  // namespace demo
