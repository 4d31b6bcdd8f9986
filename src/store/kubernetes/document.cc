#include "store/kubernetes/document.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "core/document.h"
#include "json/json.h"
#include "store/common/document_loop.h"

namespace baton::store::kubernetes {
namespace {

using core::StoreTime;
using nlohmann::json;

// One entry of the document, in this module's terms and in the core's.
struct Part {
  const char* list;
  const char* end;  // the core's name for when it ends
};
constexpr Part kParts[] = {{"holders", "expires"}, {"waiters", "stale"}, {"tombstones", "until"}};

std::string id_of(const Part& part, const json& entry) {
  std::string id = std::string(1, part.list[0]) + entry.at("grant").get<std::string>();
  return entry.contains("converting") ? id + "c" : id;
}

// The same record still, if nobody has changed when it ends.
Timing timing_of(const json& entry, const Part& part, const Timings& known, std::uint64_t write,
                 const ClockReading& now) {
  const StoreTime ends(entry.at(part.end).get<std::int64_t>());
  const auto since = entry.find("since");
  const StoreTime held_since(since == entry.end() ? 0 : since->get<std::int64_t>());
  const auto it = known.find(id_of(part, entry));
  Timing timing;
  if (it != known.end() && it->second.ends == ends) {
    timing = it->second;
  } else {
    timing = {.write = write, .at = now.server, .lasts = ends - now.here, .ends = ends};
  }
  if (it != known.end() && it->second.held_since == held_since) {
    timing.since = it->second.since;
  } else {
    timing.since = std::max(ServerTime{0}, now.server - (now.here - held_since));
  }
  timing.held_since = held_since;
  return timing;
}

std::int64_t count_of(const json& object, const char* name) {
  const json& value = object.at(name);
  if (!value.is_number_unsigned()) throw std::runtime_error(std::string(name) + " is no count");
  const auto count = value.get<std::uint64_t>();
  if (count > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / 8) {
    throw std::runtime_error(std::string(name) + " is too large");
  }
  return static_cast<std::int64_t>(count);
}

Timing read_timing(const json& entry, const Part& part, const Timings& known,
                   const ClockReading& now) {
  const json& time = entry.at("time");
  const bool holds = part.list == kParts[0].list;
  if (!time.is_object() || time.size() != 3) throw std::runtime_error("a broken time");
  Timing timing;
  timing.write = static_cast<std::uint64_t>(count_of(time, "write"));
  timing.at = ServerTime(count_of(time, "at"));
  timing.lasts = std::chrono::microseconds(count_of(time, "for"));
  if (holds) timing.since = ServerTime(count_of(entry, "since"));
  const auto it = known.find(id_of(part, entry));
  const bool seen = it != known.end() && it->second.write == timing.write &&
                    it->second.at == timing.at && it->second.lasts == timing.lasts;
  if (seen) {
    timing.ends = it->second.ends;
  } else {
    const bool dated = timing.at != ServerTime{0} && now.server != ServerTime{0};
    const auto by_date = timing.at + timing.lasts + kDateGrace - now.server;
    timing.ends = now.here + (dated ? std::clamp<StoreTime>(by_date, StoreTime{0}, timing.lasts)
                                    : timing.lasts);
  }
  if (holds) {
    const bool same = it != known.end() && it->second.since == timing.since;
    timing.held_since =
        same ? it->second.held_since : now.here - std::max(StoreTime{0}, now.server - timing.since);
  }
  return timing;
}

}  // namespace

std::string print_document(const core::NameState& state, const Timings& known, std::uint64_t write,
                           const ClockReading& now, Timings& timings) {
  json document = parse_json_or_throw(core::to_document(state));
  Timings made;
  for (const Part& part : kParts) {
    const auto list = document.find(part.list);
    if (list == document.end()) continue;
    for (json& entry : *list) {
      const Timing timing = timing_of(entry, part, known, write, now);
      entry["time"] = {{"at", static_cast<std::uint64_t>(timing.at.count())},
                       {"for", static_cast<std::uint64_t>(timing.lasts.count())},
                       {"write", timing.write}};
      if (entry.contains("since")) {
        entry["since"] = static_cast<std::uint64_t>(timing.since.count());
      }
      entry.erase(part.end);
      made.insert_or_assign(id_of(part, entry), timing);
    }
  }
  timings = std::move(made);
  return document.dump();
}

Result<core::NameState> parse_document(std::string_view text, std::uint64_t version,
                                       const Timings& known, const ClockReading& now,
                                       Timings& timings) {
  Timings made;
  try {
    json document = parse_json_or_throw(text);
    for (const Part& part : kParts) {
      const auto list = document.find(part.list);
      if (list == document.end()) continue;
      for (json& entry : *list) {
        const Timing timing = read_timing(entry, part, known, now);
        made.insert_or_assign(id_of(part, entry), timing);
        entry.erase("time");
        entry[part.end] = timing.ends.count();
        if (entry.contains("since")) entry["since"] = timing.held_since.count();
      }
    }
    auto state = core::from_document(document.dump());
    if (!state) return state;
    resolve(*state, version);
    timings = std::move(made);
    return state;
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_store,
                 .message = std::string("a damaged lock document: ") + problem.what()};
  }
}

}  // namespace baton::store::kubernetes
