// Preloaded into baton: just before it opens the file $BATON_TEST_SWAP_PATH for the first time,
// $BATON_TEST_SWAP_WITH takes its place, as somebody would do it who knows when it is looked at.

#include <dlfcn.h>
#include <fcntl.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Open = int (*)(const char*, int, ...);

int swap_and_open(const char* name, const char* path, int flags, mode_t mode) {
  static const char* swapped = std::getenv("BATON_TEST_SWAP_PATH");
  if (swapped != nullptr && std::strcmp(path, swapped) == 0) {
    swapped = nullptr;
    if (std::rename(std::getenv("BATON_TEST_SWAP_WITH"), path) != 0) std::abort();
  }
  return reinterpret_cast<Open>(dlsym(RTLD_NEXT, name))(path, flags, mode);
}

mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

// By these names that of the C library is called, also where large files have one of their own.
extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return swap_and_open("open", path, flags, mode);
}

extern "C" int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return swap_and_open("open64", path, flags, mode);
}
