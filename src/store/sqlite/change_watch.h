#pragma once

#include <string>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"

namespace baton::store::sqlite {

// Tells when one of some files is written to, by inotify. Hints only: it may be too early, because
// a commit is visible a little after its bytes are in the write-ahead log, and it may tell of
// nothing that matters.
class BATON_EXPORT ChangeWatch {
 public:
  ChangeWatch() = default;
  explicit ChangeWatch(const std::vector<std::string>& paths);
  ChangeWatch(ChangeWatch&& other) noexcept;
  ChangeWatch& operator=(ChangeWatch&& other) noexcept;
  ~ChangeWatch();

  // Whether one has changed since the last call.
  [[nodiscard]] bool changed() const;

  // Until it changes, until `interrupt` can be read (a file descriptor), or until `until`.
  void wait(Instant until, int interrupt) const;

 private:
  int inotify_ = -1;
};

}  // namespace baton::store::sqlite
