#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "store/redis/msgpack.h"

namespace baton::store::redis {

// Commands on their way, one after the other.
class Commands {
 public:
  Commands& add(std::initializer_list<std::string_view> words) {
    begin();
    for (const std::string_view each : words) word(each);
    end();
    return *this;
  }

  // One command: its words come between these two.
  void begin() {
    begun_at_ = bytes_.size();
    words_ = 0;
  }
  void end();
  void word(std::string_view text) { joined({text}); }
  void joined(std::initializer_list<std::string_view> pieces);  // one word
  void number(std::int64_t value);

  // A word that `fill` packs.
  template <typename Fill>
  void packed(Fill fill) {
    const std::size_t at = bytes_.size();
    Packer out(bytes_);
    fill(out);
    head(at);
  }

  // Keeps its memory, unless it is much.
  void clear();
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void head(std::size_t at);  // what stands there is a word

  std::string bytes_;
  std::size_t count_ = 0;
  std::size_t begun_at_ = 0;
  std::int64_t words_ = 0;
};

}  // namespace baton::store::redis
