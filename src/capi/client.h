#pragma once

#include "baton/locks.h"
#include "capi/boundary.h"
#include "capi/handles.h"

namespace baton::capi {

// What a baton_client stands for.
struct Client {
  static constexpr Kind kKind = Kind::client;
  LockClient locks;
};

struct Acquire {
  std::vector<LockName> names;
  AcquireOptions options;
};

// The arguments of an acquire, copied.
Result<Acquire> read_acquire(const char* const* names, std::size_t count,
                             const baton_acquire_options* given);

Result<Mode> mode_of(std::int32_t mode);
std::int32_t number_of(Mode mode);

// Null with an unset note.
NoteChange note_of(const std::int64_t* ordinal, const char* text);

}  // namespace baton::capi
