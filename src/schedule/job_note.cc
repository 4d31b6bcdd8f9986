#include "schedule/job_note.h"

#include "baton/scheduler.h"
#include "json/json.h"

namespace baton::schedule {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPastDetailBytes = 60;
constexpr std::size_t kBesidePast = 64;  // of the note: the key, brackets, and some room

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Notes may have been written by anyone: a field of another type counts as not there.
std::int64_t number(const json& value, const char* key) {
  const auto it = value.find(key);
  return it != value.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}
std::string text(const json& value, const char* key) {
  const auto it = value.find(key);
  return it != value.end() && it->is_string() ? it->get<std::string>() : std::string();
}
bool flag(const json& value, const char* key) {
  const auto it = value.find(key);
  return it != value.end() && it->is_boolean() && it->get<bool>();
}
int small(const json& value, const char* key) {
  return static_cast<int>(std::clamp<std::int64_t>(number(value, key), 0, 1'000'000'000));
}

json print(const PastRun& run) {
  json value{{"fire", run.fire}, {"due", run.due},   {"started", run.started}, {"ended", run.ended},
             {"took", run.took}, {"node", run.node}, {"result", run.result}};
  if (!run.detail.empty()) value["detail"] = run.detail.substr(0, kMaxDetailBytes);
  if (run.attempt > 1) value["attempt"] = run.attempt;
  return value;
}

PastRun parse_run(const json& value) {
  return {.fire = number(value, "fire"),
          .due = number(value, "due"),
          .started = number(value, "started"),
          .ended = number(value, "ended"),
          .took = number(value, "took"),
          .node = text(value, "node"),
          .result = text(value, "result"),
          .detail = text(value, "detail"),
          .attempt = std::max(1, small(value, "attempt"))};
}

// Short, because each write of the note has all of them: the start counts from the due time.
json print_short(const PastRun& run) {
  json value{run.fire, run.due, run.started - run.due, run.took, run.node, run.result};
  if (!run.detail.empty() || run.attempt > 1) value.push_back(run.detail);
  if (run.attempt > 1) value.push_back(run.attempt);
  return value;
}

std::optional<PastRun> parse_short(const json& value) {
  if (!value.is_array() || value.size() < 6 || value.size() > 8) return std::nullopt;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool fine = i < 4 || i == 7 ? value[i].is_number_integer() : value[i].is_string();
    if (!fine) return std::nullopt;
  }
  PastRun run{.fire = value[0].get<std::int64_t>(),
              .due = value[1].get<std::int64_t>(),
              .took = value[3].get<std::int64_t>(),
              .node = value[4].get<std::string>(),
              .result = value[5].get<std::string>()};
  // Somebody else may have written it: wrong numbers are no reason for undefined behaviour.
  constexpr std::int64_t kSane = std::int64_t{1} << 53;
  const auto late = value[2].get<std::int64_t>();
  for (const std::int64_t time : {run.due, late, run.took}) {
    if (time < -kSane || time > kSane) return std::nullopt;
  }
  run.started = run.due + late;
  run.ended = run.started + run.took;
  if (value.size() > 6) run.detail = value[6].get<std::string>();
  if (value.size() > 7) {
    run.attempt =
        static_cast<int>(std::clamp<std::int64_t>(value[7].get<std::int64_t>(), 1, 1'000'000));
  }
  return run;
}

// The newest first, so that the oldest have no room.
json print_past(const std::vector<PastRun>& past, std::size_t room) {
  json list = json::array();
  std::size_t size = 0;
  for (const PastRun& run : past) {
    json one = print_short(run);
    size += dump(one).size() + 1;
    if (size > room) break;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

NoteChange to_note(const JobNote& note) {
  json value{{"fire", note.fire},
             {"state", note.started ? "started" : "done"},
             {"due", note.due},
             {"began", note.began},
             {"node", note.node}};
  if (note.attempt > 1) value["attempt"] = note.attempt;
  if (note.manual) value["manual"] = true;
  if (note.runs != 0) value["runs"] = note.runs;
  if (note.skips != 0) value["skips"] = note.skips;
  if (note.failures != 0) value["failures"] = note.failures;
  if (note.offset >= 0) value["offset"] = note.offset;
  if (note.next != 0) value["next"] = note.next;
  if (!note.schedule.empty()) value["schedule"] = note.schedule;
  if (note.last) value["last"] = print(*note.last);
  if (!note.past.empty()) {
    const std::size_t size = dump(value).size() + kBesidePast;
    value["past"] = print_past(note.past, size < kMaxNoteBytes ? kMaxNoteBytes - size : 0);
  }
  return {.ordinal = note.ordinal(), .text = dump(value)};
}

void remember_run(JobNote& note, PastRun run, std::size_t keep) {
  if (keep > 1 && note.last) {
    note.last->detail.resize(std::min(note.last->detail.size(), kMaxPastDetailBytes));
    note.past.insert(note.past.begin(), std::move(*note.last));
  }
  note.past.resize(std::min(note.past.size(), keep > 0 ? keep - 1 : 0));
  note.last = std::move(run);
}

std::optional<JobNote> from_note(const Note& note) {
  if (note.ordinal <= 0) return std::nullopt;
  JobNote job;
  job.fire = note.ordinal / 2;
  job.started = note.ordinal % 2 == 0;
  const json value = parse_json(note.text);
  if (!value.is_object()) return job;
  job.due = number(value, "due");
  job.began = number(value, "began");
  job.node = text(value, "node");
  job.attempt = std::max(1, small(value, "attempt"));
  job.manual = flag(value, "manual");
  job.runs = number(value, "runs");
  job.skips = number(value, "skips");
  job.failures = small(value, "failures");
  if (value.contains("offset")) job.offset = small(value, "offset");
  job.next = number(value, "next");
  job.schedule = text(value, "schedule");
  if (const auto last = value.find("last"); last != value.end() && last->is_object()) {
    job.last = parse_run(*last);
  }
  if (const auto past = value.find("past"); past != value.end() && past->is_array()) {
    for (const json& one : *past) {
      if (job.past.size() >= kMaxKeptRuns) break;
      if (auto run = parse_short(one)) job.past.push_back(std::move(*run));
    }
  }
  return job;
}

NoteChange to_note(const ControlNote& note) {
  json value{{"runs", note.runs}, {"skips", note.skips}, {"paused", note.paused}};
  if (note.paused) value["by"] = note.paused_by;
  return {.ordinal = note.version, .text = dump(value)};
}

ControlNote control_from_note(const Note& note) {
  ControlNote control;
  control.version = note.ordinal;
  const json value = parse_json(note.text);
  if (!value.is_object()) return control;
  control.paused = flag(value, "paused");
  control.paused_by = text(value, "by");
  control.runs = number(value, "runs");
  control.skips = number(value, "skips");
  return control;
}

LockName job_name(const std::string& job, const std::string& region) {
  return {.subject = std::string(kJobSubject),
          .predicate = std::string(kJobPredicate),
          .resources = {job},
          .region = region};
}

LockName control_name(const std::string& job, const std::string& region) {
  return {.subject = std::string(kJobControlSubject),
          .predicate = std::string(kJobControlPredicate),
          .resources = {job},
          .region = region};
}

std::optional<std::string> job_of_key(std::string_view key) {
  auto name = parse_key(key);
  if (!name || name->resources.size() != 1) return std::nullopt;
  return std::move(name->resources.front());
}

}  // namespace baton::schedule
