#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/lock_table.h"
#include "store/common/subscribers.h"
#include "store/sqlite/wake_directory.h"

namespace baton::store::sqlite {

// Wake-ups between the processes that share a lock file. Each channel that somebody watches has a
// file in a directory beside the database. The process that promotes a waiter appends its grant id
// there; the watcher is told by inotify. So only the process whose waiter was promoted wakes.
//
// Hints only: whatever fails here costs time, never safety. A watcher keeps its file locked
// (flock), so that the files of dead processes can be told and removed.
class WakeFiles : public std::enable_shared_from_this<WakeFiles> {
 public:
  // `access` is that of the database file: a user that may lock may wake. A directory that somebody
  // else has put there is left alone, and there are no wake-ups between processes then.
  WakeFiles(std::string directory, const Access& access);
  ~WakeFiles();
  WakeFiles(const WakeFiles&) = delete;
  WakeFiles& operator=(const WakeFiles&) = delete;

  // The watch keeps what it needs alive, also past the store.
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink);

  // Directly for the channels of this object, through their files for all others.
  void wake(std::vector<core::Wake> wakes);

 private:
  class FileWatch;
  struct Mailbox {
    std::string name;
    Descriptor file;
    int watch = -1;  // inotify's number
    off_t read = 0;  // how far
    std::size_t users = 0;
  };

  void join(const std::string& channel);
  void leave(const std::string& channel);
  bool start();
  [[nodiscard]] std::optional<Mailbox> open_mailbox(const std::string& channel);
  void listen();
  void heard(int watch, std::uint32_t what);
  void remove_abandoned() const;

  const std::string directory_;
  const Access access_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
  std::mutex mutex_;
  std::map<std::string, Mailbox> mailboxes_;
  int inotify_ = -1;
  int stop_ = -1;
  std::thread listener_;
};

}  // namespace baton::store::sqlite
