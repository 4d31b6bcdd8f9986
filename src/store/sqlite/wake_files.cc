#include "store/sqlite/wake_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <algorithm>
#include <array>
#include <utility>

namespace baton::store::sqlite {
namespace {

constexpr off_t kLongFile = 1 << 16;
constexpr int kSweepAtMost = 256;

// Grant ids as they are in memory: only processes of this machine read them.
static_assert(sizeof(GrantId) == 16);

void post(const Descriptor& file, std::span<const GrantId> grants) {
  const auto size = static_cast<ssize_t>(grants.size_bytes());
  // On a full disk a touch still wakes.
  if (::write(file.get(), grants.data(), grants.size_bytes()) != size) {
    ::futimens(file.get(), nullptr);
  }
}

}  // namespace

class WakeFiles::FileWatch final : public Watch {
 public:
  FileWatch(std::shared_ptr<WakeFiles> files, std::string channel, WakeSink& sink)
      : files_(std::move(files)),
        channel_(std::move(channel)),
        subscription_(files_->subscribers_->add(channel_, sink)) {
    files_->join(channel_);
  }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch() override {
    subscription_.reset();
    files_->leave(channel_);
  }

 private:
  std::shared_ptr<WakeFiles> files_;
  std::string channel_;
  std::unique_ptr<Watch> subscription_;
};

WakeFiles::WakeFiles(std::string directory, const Access& access)
    : directory_(std::move(directory)), access_(access) {}

WakeFiles::~WakeFiles() {
  if (listener_.joinable()) {
    const std::uint64_t one = 1;
    // An eventfd takes eight bytes at once or fails only if it is full, which wakes as well.
    [[maybe_unused]] const ssize_t written = ::write(stop_, &one, sizeof one);
    listener_.join();
  }
  if (inotify_ >= 0) ::close(inotify_);
  if (stop_ >= 0) ::close(stop_);
}

std::unique_ptr<Watch> WakeFiles::watch(const std::string& channel, WakeSink& sink) {
  return std::make_unique<FileWatch>(shared_from_this(), channel, sink);
}

void WakeFiles::wake(std::vector<core::Wake> wakes) {
  std::sort(wakes.begin(), wakes.end(), [](const core::Wake& a, const core::Wake& b) {
    return std::tie(a.channel, a.grant) < std::tie(b.channel, b.grant);
  });
  wakes.erase(std::unique(wakes.begin(), wakes.end()), wakes.end());
  std::optional<WakeDirectory> directory;
  for (auto it = wakes.begin(); it != wakes.end();) {
    const std::string& channel = it->channel;
    std::vector<GrantId> grants;
    for (; it != wakes.end() && it->channel == channel; ++it) grants.push_back(it->grant);
    if (channel.empty()) continue;
    bool ours = false;
    {
      const std::lock_guard lock(mutex_);
      ours = mailboxes_.contains(channel);
    }
    if (ours) {
      subscribers_->wake(channel, grants);
      continue;
    }
    if (!directory) directory = WakeDirectory::open(directory_, access_);
    if (!directory) continue;
    // Without a file nobody listens.
    if (const auto file = directory->open_file(wake_file_name(channel), O_WRONLY | O_APPEND)) {
      post(file, grants);
    }
  }
}

void WakeFiles::join(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  auto [it, is_new] = mailboxes_.try_emplace(channel);
  ++it->second.users;
  if (!is_new || !start()) return;
  if (auto opened = open_mailbox(channel)) {
    it->second = std::move(*opened);
    it->second.users = 1;
  }
}

void WakeFiles::leave(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  const auto it = mailboxes_.find(channel);
  if (--it->second.users > 0) return;
  const Mailbox mailbox(std::move(it->second));
  mailboxes_.erase(it);
  if (!mailbox.file) return;
  ::inotify_rm_watch(inotify_, mailbox.watch);
  if (const auto directory = WakeDirectory::open(directory_, access_)) {
    directory->remove_if_abandoned(mailbox.name, mailbox.file);
  }
}

// The listener starts with the first watch; a process that never waits has none.
bool WakeFiles::start() {
  if (listener_.joinable()) return true;
  remove_abandoned();
  if (inotify_ < 0) inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (stop_ < 0) stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (inotify_ < 0 || stop_ < 0) return false;
  listener_ = std::thread([this] { listen(); });
  return true;
}

std::optional<WakeFiles::Mailbox> WakeFiles::open_mailbox(const std::string& channel) {
  const auto directory = WakeDirectory::make(directory_, access_);
  if (!directory) return std::nullopt;
  Mailbox mailbox;
  mailbox.name = wake_file_name(channel);
  // Until the file that we have locked is the one that has the name: a sweep may come between.
  for (int tries = 0; tries < 8; ++tries) {
    mailbox.file = directory->open_file(mailbox.name, O_CREAT | O_RDWR);
    if (!mailbox.file || ::flock(mailbox.file.get(), LOCK_SH | LOCK_NB) != 0 ||
        !directory->names(mailbox.name, mailbox.file)) {
      continue;
    }
    mailbox.read = ::lseek(mailbox.file.get(), 0, SEEK_END);
    // By the descriptor: the path may lead elsewhere by now.
    const std::string opened = "/proc/self/fd/" + std::to_string(mailbox.file.get());
    mailbox.watch = ::inotify_add_watch(inotify_, opened.c_str(), IN_MODIFY | IN_ATTRIB);
    if (mailbox.watch >= 0) return mailbox;
  }
  return std::nullopt;
}

void WakeFiles::remove_abandoned() const {
  const auto directory = WakeDirectory::open(directory_, access_);
  if (!directory) return;
  int looked_at = 0;
  directory->visit([&](const std::string& name) {
    if (const auto file = directory->open_file(name, O_RDONLY)) {
      directory->remove_if_abandoned(name, file);
    }
    return ++looked_at < kSweepAtMost;
  });
}

void WakeFiles::listen() {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  std::array<pollfd, 2> waiting{{{inotify_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (true) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    if (waiting[1].revents != 0) return;
    const ssize_t size = ::read(inotify_, buffer.data(), buffer.size());
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      heard(event.wd, event.mask);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

void WakeFiles::heard(int watch, std::uint32_t what) {
  if ((what & IN_Q_OVERFLOW) != 0) return subscribers_->wake_all();
  std::string channel;
  std::vector<GrantId> grants;
  bool any = (what & IN_ATTRIB) != 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(mailboxes_.begin(), mailboxes_.end(),
                                 [&](const auto& entry) { return entry.second.watch == watch; });
    if (it == mailboxes_.end()) return;
    channel = it->first;
    Mailbox& box = it->second;
    struct stat now {};
    if (::fstat(box.file.get(), &now) != 0) return;
    // Another watcher of the channel has emptied it: what it said is gone.
    if (now.st_size < box.read) any = true, box.read = 0;
    const auto letters = static_cast<std::size_t>(now.st_size - box.read) / sizeof(GrantId);
    grants.resize(letters);
    const ssize_t got = ::pread(box.file.get(), grants.data(), letters * sizeof(GrantId), box.read);
    grants.resize(got > 0 ? static_cast<std::size_t>(got) / sizeof(GrantId) : 0);
    box.read += static_cast<off_t>(grants.size() * sizeof(GrantId));
    if (box.read >= kLongFile && ::ftruncate(box.file.get(), 0) == 0) {
      // Wake-ups that came between reading and emptying the file are lost: wake every waiter.
      any = true;
      box.read = 0;
    }
  }
  if (any) grants.clear();
  if (any || !grants.empty()) subscribers_->wake(channel, grants);
}

}  // namespace baton::store::sqlite
