#pragma once

// Where things are in etcd. Everything of a name is next to each other, so that one range reads its
// document together with the marks that say who of it is alive:
//
//   <prefix>/n/<key>                   the document, as core/document.h writes it
//   <prefix>/n/<key> 00 <grant> g      its claimant is alive: on the lease of its process
//   <prefix>/n/<key> 00 <grant> a      its at-least-for time is not over: on a lease of its own
//   <prefix>/n/<key> 00 <grant> t      its tombstone still stands
//   <prefix>/w/<channel>               whom of that process to wake
//   <prefix>/e/<session>/<number>      a write epoch of that process has ended: see write_epoch.h
//
// A key never has a control character in it, so 00 ends it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/grant_id.h"

namespace baton::store::etcd {

enum class Mark : char { alive = 'g', at_least = 'a', tombstone = 't' };

class Layout {
 public:
  explicit Layout(const std::string& prefix)
      : names_(prefix + "/n/"), wakes_(prefix + "/w/"), epochs_(prefix + "/e/") {}

  [[nodiscard]] std::string document(const std::string& key) const { return names_ + key; }
  [[nodiscard]] std::string document_end(const std::string& key) const {
    return names_ + key + '\x01';
  }
  [[nodiscard]] std::string mark(const std::string& key, GrantId grant, Mark mark) const {
    return marks(key, grant) + static_cast<char>(mark);
  }
  // All marks of one grant.
  [[nodiscard]] std::string marks(const std::string& key, GrantId grant) const {
    return names_ + key + '\0' + to_string(grant);
  }
  [[nodiscard]] std::string marks_end(const std::string& key, GrantId grant) const {
    return marks(key, grant) + '\x7f';
  }
  [[nodiscard]] std::string wake(const std::string& channel) const { return wakes_ + channel; }
  [[nodiscard]] std::string epoch(const std::string& session, std::uint64_t number) const {
    return epochs_ + session + '/' + std::to_string(number);
  }
  [[nodiscard]] const std::string& names() const { return names_; }

  struct ParsedKey {
    std::string key;
    std::optional<GrantId> grant;  // none: the document itself
    Mark mark = Mark::alive;
  };
  // Nothing for what we would not have written.
  [[nodiscard]] std::optional<ParsedKey> parse(std::string_view at) const;

 private:
  std::string names_;
  std::string wakes_;
  std::string epochs_;
};

// The first key after all that start with this.
[[nodiscard]] std::string after_prefix(std::string prefix);

}  // namespace baton::store::etcd
