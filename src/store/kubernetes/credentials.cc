#include "store/kubernetes/credentials.h"

#include <algorithm>
#include <fstream>

namespace baton::store::kubernetes {
namespace {

constexpr off_t kMaxTokenBytes = 64 << 10;

}  // namespace

// A replaced file is another file, or at least written at another time.
bool Credentials::changed() {
  struct stat now {};
  if (::stat(file_.c_str(), &now) != 0) return token_.empty();
  const bool same = now.st_ino == seen_.st_ino && now.st_dev == seen_.st_dev &&
                    now.st_size == seen_.st_size && now.st_mtim.tv_sec == seen_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == seen_.st_mtim.tv_nsec;
  seen_ = now;
  return !same;
}

Result<std::string> Credentials::authorization() {
  const std::lock_guard lock(mutex_);
  if (!file_.empty() && changed()) {
    std::string text;
    // A FIFO would keep every request waiting; tokens have some KiB.
    if (S_ISREG(seen_.st_mode) && seen_.st_size <= kMaxTokenBytes) {
      std::ifstream file(file_, std::ios::binary);
      text.resize(static_cast<std::size_t>(seen_.st_size));
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      text.resize(static_cast<std::size_t>(file.gcount()));
    }
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
    const bool plain =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 127; });
    if (text.empty() || !plain) {
      seen_ = {};
      return Error{.code = Code::unauthorized,
                   .message = "there is no token in " + file_,
                   .retryable = true};
    }
    token_ = std::move(text);
  }
  return token_.empty() ? std::string() : http_client::bearer_auth(token_);
}

void Credentials::doubt() {
  const std::lock_guard lock(mutex_);
  seen_ = {};
}

}  // namespace baton::store::kubernetes
