#include "store/redis/commands.h"

#include <array>
#include <charconv>

namespace baton::store::redis {
namespace {

// The longest line that says how much is to come.
constexpr std::size_t kLine = 32;

char* write_number(char* to, std::int64_t value) {
  return std::to_chars(to, to + kLine - 8, value).ptr;
}

// The line before a word. It ends the one above too: the command's first, or another word.
char* write_head(char* to, std::size_t size) {
  *to++ = '\r';
  *to++ = '\n';
  *to++ = '$';
  to = write_number(to, static_cast<std::int64_t>(size));
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

}  // namespace

void Commands::clear() {
  constexpr std::size_t kKept = 1 << 16;
  bytes_.clear();
  if (bytes_.capacity() > kKept) bytes_.shrink_to_fit();
  count_ = 0;
}

// Only now it is known what comes first.
void Commands::end() {
  bytes_ += "\r\n";
  std::array<char, kLine> line{'*'};
  const char* end = write_number(line.data() + 1, words_);
  bytes_.insert(begun_at_, std::string_view(line.data(), end));
  ++count_;
}

void Commands::head(std::size_t at) {
  std::array<char, kLine> line;
  const char* end = write_head(line.data(), bytes_.size() - at);
  bytes_.insert(at, std::string_view(line.data(), end));
  ++words_;
}

void Commands::joined(std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  std::array<char, kLine> line;
  bytes_.append(line.data(), write_head(line.data(), size));
  for (const std::string_view piece : pieces) bytes_ += piece;
  ++words_;
}

void Commands::number(std::int64_t value) {
  std::array<char, kLine> digits;
  word(std::string_view(digits.data(), write_number(digits.data(), value)));
}

}  // namespace baton::store::redis
