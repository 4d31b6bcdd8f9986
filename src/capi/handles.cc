#include "capi/handles.h"

#include <pthread.h>

#include <string>

#include "runtime/inherited.h"

namespace baton::capi {
namespace {

// The low bits are the kind. Bits at the top keep handles apart from small integers and pointers.
constexpr int kKindBits = 3;
constexpr std::uintptr_t kMark = sizeof(std::uintptr_t) == 8 ? std::uintptr_t{0x0BA7} << 48 : 0;

const char* word(Kind kind) {
  switch (kind) {
    case Kind::client: return "client";
    case Kind::lease: return "lease";
    case Kind::request: return "request";
    case Kind::elector: return "elector";
  }
  return "handle";
}

}  // namespace

Handles::Handles() {
  static Handles& self = *this;
  pthread_atfork([] { self.mutex_.lock(); }, [] { self.mutex_.unlock(); },
                 [] {
                   ++self.forks_;
                   self.mutex_.unlock();
                 });
}

Handles& Handles::all() {
  static Handles* const handles = new Handles;
  return *handles;
}

std::uintptr_t Handles::add(Kind kind, std::shared_ptr<void> object) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t handle = kMark | (++last_ << kKindBits) | static_cast<std::uintptr_t>(kind);
  entries_.emplace(handle, Entry{std::move(object), forks_});
  return handle;
}

Handles::Found Handles::find(Kind kind, std::uintptr_t handle) {
  if ((handle & ((1U << kKindBits) - 1)) != static_cast<std::uintptr_t>(kind)) return {};
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(handle);
  if (entry == entries_.end()) return {};
  return {entry->second.object, entry->second.forks != forks_};
}

Handles::Found Handles::remove(Kind kind, std::uintptr_t handle) {
  auto found = find(kind, handle);
  if (found.object == nullptr) return {};
  {
    const std::lock_guard lock(mutex_);
    // Of two threads that free it, one was first.
    if (entries_.erase(handle) == 0) return {};
  }
  if (found.inherited) runtime::keep_for_ever(found.object);
  return found;
}

Error no_such_handle(Kind kind) {
  return {.code = Code::bad_request,
          .message = std::string("this is no ") + word(kind) +
                     ", or no longer: it is NULL, of another kind, or has been freed"};
}

Error handle_of_parent(Kind kind) {
  return {.code = Code::bad_request,
          .message = std::string("this ") + word(kind) +
                     " was made before a fork, by the parent of this process: open a client in "
                     "the child"};
}

}  // namespace baton::capi
