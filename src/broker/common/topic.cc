#include <optional>

#include "baton/broker.h"

namespace baton {
namespace {

// The words between the dots of a text, one at a time. An empty text has no words.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text), done_(text.empty()) {}

  [[nodiscard]] bool done() const { return done_; }

  [[nodiscard]] std::string_view first() const { return rest_.substr(0, rest_.find('.')); }

  void next() {
    const auto dot = rest_.find('.');
    done_ = dot == std::string_view::npos;
    if (!done_) rest_.remove_prefix(dot + 1);
  }

 private:
  std::string_view rest_;
  bool done_;
};

}  // namespace

// Only the last # ever needs to take more words: whatever an earlier one took, the pattern up to
// the last # has matched, and the last one can take the rest. So this ends after at most
// (words of the pattern) × (words of the key) steps.
bool topic_matches(std::string_view pattern, std::string_view key) {
  Words wanted(pattern);
  Words given(key);
  std::optional<Words> behind_hash;  // of the pattern
  Words retry_at = given;            // what the # has not taken yet
  while (!given.done()) {
    if (!wanted.done() && wanted.first() == "#") {
      wanted.next();
      if (wanted.done()) return true;
      behind_hash = wanted;
      retry_at = given;
    } else if (!wanted.done() && (wanted.first() == "*" || wanted.first() == given.first())) {
      wanted.next();
      given.next();
    } else if (behind_hash) {
      retry_at.next();
      wanted = *behind_hash;
      given = retry_at;
    } else {
      return false;
    }
  }
  while (!wanted.done() && wanted.first() == "#") wanted.next();
  return wanted.done();
}

}  // namespace baton
