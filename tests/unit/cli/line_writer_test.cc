// Lines for a reader that does not read.

#include "cli/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

class Pipe {
 public:
  Pipe() {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~Pipe() {
    close_reader();
    if (ends_[1] >= 0) close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  // For a thread that may still be writing there.
  void leave_writer_open() { ends_[1] = -1; }
  // All lines until one that is `last`.
  [[nodiscard]] std::string read_to(const std::string& last) const {
    std::string text;
    char byte = 0;
    while (!text.ends_with(last) && read(ends_[0], &byte, 1) == 1) text += byte;
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

bool readable(int file) {
  pollfd look{file, POLLIN, 0};
  return poll(&look, 1, 30'000) == 1;
}

TEST(LineWriter, who_adds_a_line_never_waits_for_the_reader) {
  Pipe pipe;
  LineWriter lines(pipe.writer());
  const std::string fills(8192, 'x');  // more than the pipe holds
  lines.add(fills + "\n");
  int added = 0;
  for (; !lines.full(); ++added) lines.add("line\n");
  for (int i = 0; i < 1'000; ++i) lines.add_news("news " + std::to_string(i) + "\n");
  lines.add("last\n");
  const std::string all = pipe.read_to("last\n");
  EXPECT_EQ(all.size(), fills.size() + 1 + static_cast<std::size_t>(added) * 5 + 9 + 5);
  EXPECT_NE(all.find("line\nnews 999\nlast\n"), std::string::npos) << "only the newest is left";
}

TEST(LineWriter, tells_when_there_is_room_again) {
  Pipe pipe;
  LineWriter lines(pipe.writer());
  lines.add(std::string(8192, 'x') + "\n");
  while (!lines.full()) lines.add("line\n");
  (void)pipe.read_to("x\nline\n");
  EXPECT_TRUE(readable(lines.changed_file()));
  lines.heard();
  EXPECT_FALSE(lines.full());
}

TEST(LineWriter, tells_that_the_reader_has_gone) {
  Pipe pipe;
  LineWriter lines(pipe.writer());
  lines.add(std::string(8192, 'x') + "\n");
  pipe.close_reader();
  EXPECT_TRUE(readable(lines.changed_file()));
  EXPECT_TRUE(lines.broken());
  lines.add("line\n");
  EXPECT_FALSE(lines.full());
}

TEST(LineWriter, is_not_held_up_at_its_end) {
  Pipe pipe;
  const Instant begin = BootClock::now();
  { LineWriter(pipe.writer()).add(std::string(8192, 'x') + "\n"); }
  EXPECT_GE(BootClock::now() - begin, Millis(1'000)) << "the reader had its chance";
  pipe.leave_writer_open();
}

}  // namespace
}  // namespace baton::cli
