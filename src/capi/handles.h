#pragma once

// The table behind the handles of the C API. A handle is a number that is never used twice, so a
// handle that was freed, or any other number, is refused without touching memory. A call shares
// what it has found, so that another thread may free the handle meanwhile.

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "baton/result.h"

namespace baton::capi {

enum class Kind : std::uint8_t { client = 1, lease, request, elector };

class Handles {
 public:
  struct Found {
    std::shared_ptr<void> object;  // none: no such handle
    bool inherited = false;        // it was made before a fork, by the parent of this process
  };

  // The table of this process; it is never destroyed.
  static Handles& all();

  [[nodiscard]] std::uintptr_t add(Kind kind, std::shared_ptr<void> object);
  [[nodiscard]] Found find(Kind kind, std::uintptr_t handle);
  // The same, and from then on there is no such handle.
  [[nodiscard]] Found remove(Kind kind, std::uintptr_t handle);

 private:
  struct Entry {
    std::shared_ptr<void> object;
    std::uint32_t forks;  // as many as there were when it was made
  };

  Handles();

  std::mutex mutex_;  // held across a fork, so that the child finds the table whole
  std::unordered_map<std::uintptr_t, Entry> entries_;
  std::uintptr_t last_ = 0;
  std::uint32_t forks_ = 0;  // from the process that made the table down to this one
};

[[nodiscard]] Error no_such_handle(Kind kind);
[[nodiscard]] Error handle_of_parent(Kind kind);

// What `handle` stands for: Object is the class that belongs to its kind.
template <typename Object, typename Handle>
Result<std::shared_ptr<Object>> object_of(Handle* handle) {
  auto found = Handles::all().find(Object::kKind, reinterpret_cast<std::uintptr_t>(handle));
  if (found.object == nullptr) return no_such_handle(Object::kKind);
  if (found.inherited) return handle_of_parent(Object::kKind);
  return std::static_pointer_cast<Object>(std::move(found.object));
}

// The same, and the handle is gone: null in a forked child, where the object is the parent's and
// must not be destroyed.
template <typename Object, typename Handle>
Result<std::shared_ptr<Object>> take_object(Handle* handle) {
  auto found = Handles::all().remove(Object::kKind, reinterpret_cast<std::uintptr_t>(handle));
  if (found.object == nullptr) return no_such_handle(Object::kKind);
  if (found.inherited) return std::shared_ptr<Object>{};
  return std::static_pointer_cast<Object>(std::move(found.object));
}

template <typename Handle, typename Object>
Handle* new_handle(std::shared_ptr<Object> object) {
  return reinterpret_cast<Handle*>(  // NOLINT(performance-no-int-to-ptr): never dereferenced
      Handles::all().add(Object::kKind, std::move(object)));
}

}  // namespace baton::capi
