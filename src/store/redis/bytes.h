#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace baton::store::redis {

// A text under construction. A command has some fifty pieces, most of them of a few bytes: here to
// add one is a comparison and a copy, of std::string it is a call.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  void add(char byte) { *more(1) = byte; }
  void add(std::string_view text) {
    if (!text.empty()) std::memcpy(more(text.size()), text.data(), text.size());
  }

  void insert(std::size_t at, std::string_view text) {
    more(text.size());
    char* const to = bytes_.get() + at;
    std::memmove(to + text.size(), to, size_ - text.size() - at);
    std::memcpy(to, text.data(), text.size());
  }

  // Where so many bytes more go, which the caller writes.
  char* more(std::size_t count) {
    char* const end = room(count);
    size_ += count;
    return end;
  }
  // The same for up to so many, of which those before `end` were written.
  char* room(std::size_t count) {
    if (count > capacity_ - size_) grow(count);
    return bytes_.get() + size_;
  }
  void written(const char* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view text() const { return {bytes_.get(), size_}; }

  // Keeps its memory, unless it is much.
  void clear() {
    constexpr std::size_t kKept = 1 << 16;
    size_ = 0;
    if (capacity_ <= kKept) return;
    bytes_.reset();
    capacity_ = 0;
  }

 private:
  void grow(std::size_t count) {
    constexpr std::size_t kFirst = 512;
    const std::size_t wanted = std::max({size_ + count, 2 * capacity_, kFirst});
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = wanted;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace baton::store::redis
