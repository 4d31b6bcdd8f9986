#include "apps/documents/notification/sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "apps/documents/common/work.h"
#include "core/sha256.h"

namespace baton::documents::notification {
namespace {

Result<void> cannot(const std::string& path) {
  return Error{.code = Code::unavailable, .message = "cannot write " + path, .retryable = true};
}

// A file appears whole, under a name that only one can make: link() refuses a name that is there.
// Until flush() it has another name. What a rollback leaves behind is sent by the next flush(): its
// event is tried again, and its file is then there.
class SpoolSender final : public Sender {
 public:
  explicit SpoolSender(std::string directory) : directory_(std::move(directory)) {}
  ~SpoolSender() override {
    for (auto& [path, file] : open_) ::close(file);
  }

  Result<void> send(const Notice& notice) override {
    const std::lock_guard lock(mutex_);
    const std::string folder = directory_ + "/" + notice.channel;
    const std::string path = folder + "/" + core::sha256(notice.idempotency_key) + ".json";
    if (open_.contains(path)) return {};
    if (::access(path.c_str(), F_OK) == 0) {
      changed_.insert(folder);  // by a process that may have died before its name was durable
      return {};
    }
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    const std::string text = dump({{"idempotencyKey", notice.idempotency_key},
                                   {"channel", notice.channel},
                                   {"to", notice.user},
                                   {"subject", notice.subject},
                                   {"body", notice.body},
                                   {"documentId", notice.document_id},
                                   {"correlationId", notice.correlation_id}}) +
                             "\n";
    const int file = ::open(aside(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return cannot(path);
    if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      ::close(file);
      ::unlink(aside(path).c_str());
      return cannot(path);
    }
    open_.emplace(path, file);
    changed_.insert(folder);
    return {};
  }

  // The disk is asked to write all files before it is waited for, so that they share its flushes;
  // the names follow, and are as durable when their folder is.
  Result<void> flush() override {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, file] : open_) {
      (void)::sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    while (!open_.empty()) {
      const auto& [path, file] = *open_.begin();
      const bool there =
          ::fsync(file) == 0 && (::link(aside(path).c_str(), path.c_str()) == 0 || errno == EEXIST);
      const Result<void> result = there ? Result<void>() : cannot(path);
      ::close(file);
      ::unlink(aside(path).c_str());
      open_.erase(open_.begin());
      if (!result) return result;
    }
    while (!changed_.empty()) {
      const std::string folder = *changed_.begin();
      changed_.erase(changed_.begin());
      if (auto durable = flush_folder(folder); !durable) return durable;
    }
    return {};
  }

 private:
  static std::string aside(const std::string& path) {
    return path + "." + std::to_string(getpid());
  }
  static Result<void> flush_folder(const std::string& folder) {
    const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool durable = file >= 0 && ::fsync(file) == 0;
    if (file >= 0) ::close(file);
    return durable ? Result<void>() : cannot(folder);
  }

  const std::string directory_;
  std::mutex mutex_;
  std::map<std::string, int> open_;  // files that have been written and have no name yet, by path
  std::set<std::string> changed_;    // folders whose names may be lost
};

}  // namespace

std::unique_ptr<Sender> spool_sender(std::string directory) {
  return std::make_unique<SpoolSender>(std::move(directory));
}

}  // namespace baton::documents::notification
