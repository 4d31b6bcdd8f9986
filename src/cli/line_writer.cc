#include "cli/line_writer.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace baton::cli {
namespace {

constexpr std::size_t kMostLines = 256;
constexpr Millis kLastChance{1'000};

bool write_whole(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

struct LineWriter::State {
  struct Line {
    std::string text;
    bool news;
  };

  explicit State(int out) : file(out), changed(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~State() { close(changed); }
  void tell() const {
    const std::uint64_t one = 1;
    (void)!write(changed, &one, sizeof one);
  }

  const int file;
  const int changed;
  std::mutex mutex;
  std::condition_variable more;
  std::condition_variable written;
  std::deque<Line> lines;  // the first one is being written
  bool broken = false;
  bool ending = false;
};

LineWriter::LineWriter(int file) : state_(std::make_shared<State>(file)) {
  // Not joined: a write to a reader that does not read has no end.
  std::thread([state = state_] { write_all(*state); }).detach();
}

LineWriter::~LineWriter() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->more.notify_all();
  state_->written.wait_for(lock, kLastChance,
                           [&] { return state_->broken || state_->lines.empty(); });
}

void LineWriter::write_all(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.more.wait(lock, [&] { return !state.lines.empty() || state.ending; });
    if (state.lines.empty()) return;
    const std::string text = state.lines.front().text;
    lock.unlock();
    const bool ok = write_whole(state.file, text);
    lock.lock();
    state.lines.pop_front();
    state.broken = !ok;
    if (state.broken) state.lines.clear();
    if (state.broken || state.lines.size() + 1 == kMostLines) state.tell();
    state.written.notify_all();
    if (state.broken) return;
  }
}

void LineWriter::add(std::string line) {
  const std::lock_guard lock(state_->mutex);
  if (state_->broken) return;
  state_->lines.push_back({std::move(line), false});
  state_->more.notify_one();
}

void LineWriter::add_news(std::string line) {
  const std::lock_guard lock(state_->mutex);
  if (state_->broken) return;
  if (state_->lines.size() > 1 && state_->lines.back().news) {
    state_->lines.back().text = std::move(line);
    return;
  }
  state_->lines.push_back({std::move(line), true});
  state_->more.notify_one();
}

bool LineWriter::full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lines.size() >= kMostLines;
}

bool LineWriter::broken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->broken;
}

int LineWriter::changed_file() const { return state_->changed; }

void LineWriter::heard() const {
  std::uint64_t count = 0;
  (void)!read(state_->changed, &count, sizeof count);
}

}  // namespace baton::cli
