#pragma once

// Locks as the commands show them.

#include "baton/store.h"
#include "cli/json_writer.h"

namespace baton::cli {

// The path of a key for people, with its region if that is not the default: "page/fs-1/3",
// "page/fs-1/3 (EU)".
[[nodiscard]] std::string shown_name(const std::string& key);

// "held", or what is special: "revoked: reason", "handed over", "released, kept until …".
[[nodiscard]] std::string shown_state(const HolderInfo& holder);

void write_json(JsonWriter& json, const HolderInfo& holder);
void write_json(JsonWriter& json, const LockInfo& info);

}  // namespace baton::cli
