#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/common/document_loop.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"

namespace baton::store::etcd {

// The marks of one grant beside a document: when each was made, or 0.
struct Marks {
  Revision alive = 0;
  Revision at_least = 0;
  Revision tombstone = 0;
  LeaseId lease = 0;  // of the mark `alive`
  bool own = false;   // made by this process

  [[nodiscard]] bool any() const { return alive != 0 || at_least != 0 || tombstone != 0; }
};

// A name as etcd has it. Each time is on the clock of the process that wrote it.
struct Record final : Provenance {
  core::NameState state;  // with its draws resolved
  Revision version = 0;
  std::string damage;
  std::map<GrantId, Marks> marks;

  [[nodiscard]] const Marks& marks_of(GrantId grant) const {
    static const Marks none;
    const auto it = marks.find(grant);
    return it == marks.end() ? none : it->second;
  }
  [[nodiscard]] bool mentions(GrantId grant) const;
};

// From what a range over the name gave. `session` is the value of this process's own marks.
[[nodiscard]] std::shared_ptr<const Record> record_of(const Layout& layout,
                                                      const std::string& session,
                                                      const std::vector<KeyValue>& found);

// From a document that another process sent when it wrote it, and what was known of the name
// before: a new claimant in it is taken to be alive. Nothing if the text is no document.
[[nodiscard]] std::shared_ptr<const Record> record_sent(const std::string& text, Revision version,
                                                        const Record& before);

}  // namespace baton::store::etcd
