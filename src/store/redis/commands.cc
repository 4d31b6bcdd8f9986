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

// Only now it is known what comes first.
void Commands::end() {
  bytes_.add("\r\n");
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
  char* to = write_head(bytes_.room(kLine + size), size);
  for (const std::string_view piece : pieces) to += piece.copy(to, piece.size());
  bytes_.written(to);
  ++words_;
}

void Commands::number(std::int64_t value) {
  std::array<char, kLine> digits;
  word(std::string_view(digits.data(), write_number(digits.data(), value)));
}

}  // namespace baton::store::redis
