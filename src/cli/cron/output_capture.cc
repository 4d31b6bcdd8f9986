#include "cli/cron/output_capture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace baton::cli {
namespace {

constexpr std::size_t kAtOnce = 64U << 10U;   // of one stream, before the others have their turn
constexpr std::size_t kAtTheEnd = 1U << 20U;  // more than a pipe holds
constexpr const char* kLogger = "baton.cron.output";

}  // namespace

OutputCapture::OutputCapture(LogQueue& log)
    : log_(log), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OutputCapture::~OutputCapture() {
  thread_.request_stop();
  wake();
  thread_.join();
  for (auto& [id, stream] : streams_) close(stream.file);
  close(wake_);
}

void OutputCapture::wake() const {
  const std::uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

OutputCapture::Id OutputCapture::add(int file, observe::LogFields fields) {
  fcntl(file, F_SETFL, O_NONBLOCK);
  const std::lock_guard lock(mutex_);
  streams_.emplace(++last_,
                   Stream{.file = file, .fields = std::move(fields), .at = BootClock::now()});
  wake();
  return last_;
}

void OutputCapture::finish(Id id) {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  Stream& stream = it->second;
  if (!stream.over) read_some(stream, kAtTheEnd);
  if (!stream.line.empty()) end_line(stream);
  tell_dropped(stream);
  close(stream.file);
  streams_.erase(it);
}

void OutputCapture::run(const std::stop_token& stop) {
  std::vector<pollfd> files;
  std::vector<Id> ids;
  while (!stop.stop_requested()) {
    files.assign(1, pollfd{wake_, POLLIN, 0});
    ids.assign(1, 0);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, stream] : streams_) {
        if (stream.over) continue;
        files.push_back({stream.file, POLLIN, 0});
        ids.push_back(id);
      }
    }
    poll(files.data(), files.size(), -1);
    std::uint64_t count = 0;
    (void)!read(wake_, &count, sizeof count);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 1; i < files.size(); ++i) {
      const auto it = files[i].revents != 0 ? streams_.find(ids[i]) : streams_.end();
      if (it != streams_.end()) read_some(it->second, kAtOnce);
    }
  }
}

void OutputCapture::read_some(Stream& stream, std::size_t most) {
  std::array<char, 16384> buffer;
  while (most > 0) {
    const ssize_t got = read(stream.file, buffer.data(), std::min(buffer.size(), most));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      stream.over = true;
      return;
    }
    take(stream, {buffer.data(), static_cast<std::size_t>(got)});
    most -= static_cast<std::size_t>(got);
  }
}

void OutputCapture::take(Stream& stream, std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::size_t room = kMaxOutputLine - stream.line.size();
    stream.line += text.substr(0, std::min(end, room));
    stream.cut = stream.cut || end > room;
    if (end == text.size()) return;
    end_line(stream);
    text.remove_prefix(end + 1);
  }
}

void OutputCapture::end_line(Stream& stream) {
  std::string line = std::exchange(stream.line, {});
  const bool cut = std::exchange(stream.cut, false);
  if (line.ends_with('\r')) line.pop_back();
  const Instant now = BootClock::now();
  const std::chrono::duration<double> past = now - stream.at;
  stream.at = now;
  stream.allowance =
      std::min(kOutputBurst, stream.allowance + past.count() * kOutputLinesPerSecond);
  if (stream.allowance < 1) {
    ++stream.dropped;
    return;
  }
  stream.allowance -= 1;
  tell_dropped(stream);
  auto fields = stream.fields;
  if (cut) fields.emplace_back("cut", "true");
  log_.write(observe::LogLevel::info, kLogger, std::move(line), std::move(fields));
}

void OutputCapture::tell_dropped(Stream& stream) {
  if (stream.dropped == 0) return;
  auto fields = stream.fields;
  fields.emplace_back("lines", std::to_string(std::exchange(stream.dropped, 0)));
  log_.write(observe::LogLevel::warn, kLogger, "OUTPUT_DROPPED", std::move(fields));
}

}  // namespace baton::cli
