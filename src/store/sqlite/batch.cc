#include "store/sqlite/batch.h"

#include <utility>

namespace baton::store::sqlite {
namespace {

bool schema_matters(Verb verb) {
  return verb == Verb::acquire || verb == Verb::claim || verb == Verb::convert;
}

// A release or cancel that only ends something. If a crash of the machine undoes it, the lock comes
// free when its TTL has passed, and a promise made to nobody is broken to nobody: a waiter that it
// promoted draws its token here, but learns of it only from its own claim. That claim is synced
// before it is answered, and with it every commit before it in the log, this one included. So a
// token that anybody was told can never be drawn again.
bool is_ending(const Request& request) {
  return (request.verb == Verb::release && request.change.empty()) ||
         (request.verb == Verb::cancel && request.tombstone_ttl <= Millis{0}) ||
         request.verb == Verb::get;
}

}  // namespace

Result<BatchRun::Row*> BatchRun::load(const std::string& key) {
  auto [it, is_new] = rows_.try_emplace(key);
  if (!is_new) return &it->second;
  auto document = file_.document(key);
  if (!document) return document.error();
  if (!*document) return &it->second;
  it->second.stored = true;
  auto state = file_.remembered().read(key, **document);
  if (state) {
    table_.names.emplace(key, std::move(*state));
  } else {
    it->second.damage = state.error().message;
  }
  return &it->second;
}

Result<Reply> BatchRun::apply(const Request& request) {
  if (schema_matters(request.verb)) {
    auto schema = load(std::string(core::kSchemaKey));
    if (!schema) return schema.error();
    if (!(*schema)->damage.empty()) {
      return Error{.code = Code::bad_store, .message = "the lock schema: " + (*schema)->damage};
    }
  }
  for (const Target& target : request.targets) {
    auto row = load(target.key);
    if (!row) return row.error();
    if ((*row)->damage.empty()) continue;
    Reply reply;
    reply.outcome = Outcome::denied;
    reply.message = "what the store knows of '" + target.key + "' is " + (*row)->damage +
                    ": restore the file from a backup";
    return reply;
  }
  only_endings_ = only_endings_ && is_ending(request);
  Reply reply = core::apply(table_, request, now_, effects_);
  for (const Target& target : request.targets) {
    const auto it = table_.names.find(target.key);
    if (it == table_.names.end() || !it->second.dirty) continue;
    rows_.find(target.key)->second.dirty = true;
    it->second.dirty = false;  // to the core it means: by this request
  }
  return reply;
}

Result<bool> BatchRun::write_back() {
  bool wrote = false;
  for (const auto& [key, row] : rows_) {
    if (!row.dirty) continue;
    const core::NameState& state = table_.names.find(key)->second;
    const bool keep = !core::forgettable(state, now_);
    if (!keep && !row.stored) continue;
    auto written = keep ? file_.save(key, file_.remembered().write(key, state)) : file_.erase(key);
    if (!written) return written.error();
    rows_added_ += static_cast<int>(keep) - static_cast<int>(row.stored);
    wrote = true;
  }
  if (table_.last != counter_) {
    if (auto written = file_.set_counter(table_.last); !written) return written.error();
    wrote = true;
  }
  return wrote;
}

}  // namespace baton::store::sqlite
