#pragma once

// Everything in the library is hidden unless it is marked: what a program may link against is
// exactly what these headers declare.
#define BATON_EXPORT __attribute__((visibility("default")))
