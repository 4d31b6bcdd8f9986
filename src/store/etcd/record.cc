#include "store/etcd/record.h"

#include <algorithm>

#include "core/document.h"

namespace baton::store::etcd {
namespace {

void read_document(Record& record, const KeyValue& item) {
  record.version = item.changed;
  auto state = core::from_document(item.value);
  if (!state) {
    record.damage = state.error().message;
    return;
  }
  record.state = std::move(*state);
  resolve(record.state, static_cast<std::uint64_t>(record.version));
}

void read_mark(Marks& marks, const Layout::ParsedKey& place, const KeyValue& item,
               const std::string& session) {
  marks.own = marks.own || item.value == session;
  switch (place.mark) {
    case Mark::alive:
      marks.alive = item.created;
      marks.lease = item.lease;
      break;
    case Mark::at_least: marks.at_least = item.created; break;
    case Mark::tombstone: marks.tombstone = item.created; break;
  }
}

}  // namespace

bool Record::mentions(GrantId grant) const {
  const auto same = [&](const auto& who) { return who.grant == grant; };
  return std::any_of(state.holders.begin(), state.holders.end(), same) ||
         std::any_of(state.waiters.begin(), state.waiters.end(), same) ||
         std::any_of(state.tombstones.begin(), state.tombstones.end(), same);
}

std::shared_ptr<const Record> record_of(const Layout& layout, const std::string& session,
                                        const std::vector<KeyValue>& found) {
  auto record = std::make_shared<Record>();
  for (const KeyValue& item : found) {
    const auto place = layout.parse(item.key);
    if (!place) continue;
    if (!place->grant) {
      read_document(*record, item);
    } else {
      read_mark(record->marks[*place->grant], *place, item, session);
    }
  }
  return record;
}

std::shared_ptr<const Record> record_sent(const std::string& text, Revision version,
                                          const Record& before) {
  auto record = std::make_shared<Record>();
  read_document(*record, {.key = {}, .value = text, .changed = version});
  if (!record->damage.empty()) return nullptr;
  const auto take = [&](GrantId grant) -> Marks& {
    Marks& marks = record->marks[grant];
    marks = before.marks_of(grant);
    if (!marks.own) marks.alive = version;
    return marks;
  };
  for (const core::Holder& holder : record->state.holders) {
    Marks& marks = take(holder.grant);
    if (!marks.own && holder.at_least_for > Millis{0}) marks.at_least = version;
  }
  for (const core::Waiter& waiter : record->state.waiters) take(waiter.grant);
  for (const core::Tombstone& stone : record->state.tombstones) {
    Marks& marks = take(stone.grant);
    if (!marks.own) marks.tombstone = version;
  }
  return record;
}

}  // namespace baton::store::etcd
