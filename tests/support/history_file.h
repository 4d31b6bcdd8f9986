#pragma once

#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace baton::test {

// What a process under test has done, line by line. Each is there as soon as it was noted: the
// process may be killed at any time.
class HistoryFile {
 public:
  explicit HistoryFile(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~HistoryFile() { ::close(file_); }
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  void note(const std::string& line) const {
    const std::string whole = line + '\n';
    if (::write(file_, whole.data(), whole.size()) < 0) std::perror("history");
  }

 private:
  int file_;
};

}  // namespace baton::test
