#include "apps/documents/notification/sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "apps/documents/common/work.h"
#include "core/sha256.h"

namespace baton::documents::notification {
namespace {

Error cannot(const std::string& path) {
  return {.code = Code::unavailable, .message = "cannot write " + path, .retryable = true};
}

// The file appears whole, under a name that only one can make: link() refuses a name that is there.
class SpoolSender final : public Sender {
 public:
  explicit SpoolSender(std::string directory) : directory_(std::move(directory)) {}

  Result<void> send(const Notice& notice) override {
    const std::string folder = directory_ + "/" + notice.channel;
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    const std::string path = folder + "/" + core::sha256(notice.idempotency_key) + ".json";
    if (::access(path.c_str(), F_OK) == 0) return {};
    const std::string aside = path + "." + std::to_string(getpid());
    const std::string text = dump({{"idempotencyKey", notice.idempotency_key},
                                   {"channel", notice.channel},
                                   {"to", notice.user},
                                   {"subject", notice.subject},
                                   {"body", notice.body},
                                   {"documentId", notice.document_id},
                                   {"correlationId", notice.correlation_id}}) +
                             "\n";
    const int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written =
        file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::fsync(file) == 0;
    if (file >= 0) ::close(file);
    const bool there = written && (::link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST);
    ::unlink(aside.c_str());
    return there ? Result<void>() : cannot(path);
  }

 private:
  const std::string directory_;
};

}  // namespace

std::unique_ptr<Sender> spool_sender(std::string directory) {
  return std::make_unique<SpoolSender>(std::move(directory));
}

}  // namespace baton::documents::notification
