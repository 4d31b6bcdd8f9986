#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace baton::store::sqlite {

// An open file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// The users that may use the wake files: the owner of the database, and all that may write it by
// its mode.
struct Access {
  uid_t owner = 0;
  mode_t mode = 0600;
};
[[nodiscard]] Access access_of(const std::string& database);

// The directory that holds the wake files. It may lie in a directory that strangers can write, such
// as /tmp, so nothing in it is trusted for its name: no link is followed, and only a regular file
// with a name of our form, one link and an owner who may write the database is opened or removed.
// Every call is relative to the directory that was checked, whatever happens to its path.
class WakeDirectory {
 public:
  // Nothing unless `path` is a directory of this user, of the database's owner or of root, that
  // nobody else can write who cannot write the database.
  [[nodiscard]] static std::optional<WakeDirectory> open(const std::string& path,
                                                         const Access& access);
  // The same, made first if nothing has that path.
  [[nodiscard]] static std::optional<WakeDirectory> make(const std::string& path,
                                                         const Access& access);

  // Opens without waiting for anybody; an invalid descriptor if it is not a wake file. `flags` are
  // those of open(2); with O_CREAT the file is made with the mode of the database.
  [[nodiscard]] Descriptor open_file(const std::string& name, int flags) const;

  // The name still belongs to this open file.
  [[nodiscard]] bool names(const std::string& name, const Descriptor& file) const;

  // Removes a file that no process watches: a watcher keeps it locked.
  void remove_if_abandoned(const std::string& name, const Descriptor& file) const;

  // Calls `visit` with each name of our form until it answers false.
  void visit(const std::function<bool(const std::string& name)>& visit) const;

 private:
  WakeDirectory(Descriptor directory, const Access& access)
      : directory_(std::move(directory)), access_(access) {}
  [[nodiscard]] bool is_wake_file(const struct stat& file) const;

  Descriptor directory_;
  Access access_;
};

// The name of the file of a channel.
[[nodiscard]] std::string wake_file_name(const std::string& channel);

}  // namespace baton::store::sqlite
