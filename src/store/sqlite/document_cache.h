#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/document.h"

namespace baton::store::sqlite {

// The documents that this process wrote last, and what they say: reading one's own writing again
// would cost more than everything else that a release does. A document that another process has
// changed is not the one that is remembered. Not thread-safe.
class DocumentCache {
 public:
  [[nodiscard]] Result<core::NameState> read(const std::string& key, std::string_view document) {
    const auto it = written_.find(key);
    if (it != written_.end() && it->second.first == document) return it->second.second;
    return core::from_document(document);
  }

  std::string write(const std::string& key, const core::NameState& state) {
    std::string document = core::to_document(state);
    if (document.size() > kLongest) {
      written_.erase(key);
      return document;
    }
    if (written_.size() == kMost) written_.clear();
    auto& remembered = written_[key];
    remembered = {document, state};
    remembered.second.dirty = false;
    return document;
  }

 private:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kLongest = 2048;
  std::unordered_map<std::string, std::pair<std::string, core::NameState>> written_;
};

}  // namespace baton::store::sqlite
