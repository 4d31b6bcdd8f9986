#pragma once

// Marks what the shared libraries export; everything else is hidden.
#define BATON_EXPORT __attribute__((visibility("default")))
