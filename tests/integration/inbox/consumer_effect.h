#pragma once

#include <string>

#include "baton/consumer.h"

namespace baton::test {

// Writes a row of the table effects in the open transaction of a handler. Throws if it cannot.
void write_effect(const Handling& handling, const std::string& what = "effect");

}  // namespace baton::test
