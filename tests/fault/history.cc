#include "history.h"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

namespace baton::test {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::vector<Token> read_written(const std::filesystem::path& data) {
  std::vector<Token> tokens;
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  sqlite3_open(data.c_str(), &database);
  sqlite3_prepare_v2(database, "SELECT token FROM entry ORDER BY seq", -1, &statement, nullptr);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    tokens.push_back(static_cast<Token>(sqlite3_column_int64(statement, 0)));
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return tokens;
}

struct Span {
  std::int64_t from = 0;
  std::int64_t to = kNever;
};

// A lock that nobody had any more.
struct Freed {
  Token token = 0;
  Span span;
  bool orphan = false;  // nobody let go of it
};

// Who waited, what was freed and when the server was away, from events in the order of time.
class Course {
 public:
  std::vector<Span> waits;
  std::vector<Freed> freed;
  std::vector<Span> outages;

  void take(const Event& event) {
    Party& party = parties_[event.who];
    switch (event.kind) {
      case 'A': party.waiting = Span{event.at}; break;
      case 'E': end_wait(party, event.at); break;
      case 'G':
        end_wait(party, event.at);
        party.holding = event.token;
        break;
      case 'L':
        party.holding.reset();
        freed.push_back({event.token, {event.at}});
        break;
      case 'P':
      case 'D':
        party.resumes = party.waiting.has_value();
        end_wait(party, event.at);
        if (party.holding && !party.paused) {
          freed.push_back({*party.holding, {event.at}, true});
          party.paused = freed.size() - 1;
        }
        break;
      case 'C':  // it may have it still
        if (party.paused) freed[*party.paused].span.to = event.at;
        party.paused.reset();
        if (party.resumes) party.waiting = Span{event.at};
        break;
      case 'O': outages.push_back({event.at}); break;
      case 'U':
        if (!outages.empty()) outages.back().to = event.at;
        break;
      default: break;
    }
    end_ = event.at;
  }

  void finish() {
    for (auto& [who, party] : parties_) end_wait(party, end_);
  }

 private:
  struct Party {
    std::optional<Span> waiting;
    std::optional<Token> holding;
    std::optional<std::size_t> paused;  // which of `freed` that is
    bool resumes = false;
  };

  void end_wait(Party& party, std::int64_t at) {
    if (party.waiting) waits.push_back({party.waiting->from, at});
    party.waiting.reset();
  }

  std::map<std::string, Party> parties_;
  std::int64_t end_ = 0;
};

// The longest part of a span in which the server was there.
std::int64_t longest_part(Span span, const std::vector<Span>& outages) {
  std::int64_t longest = 0;
  for (const Span& outage : outages) {
    if (outage.to <= span.from || outage.from >= span.to) continue;
    longest = std::max(longest, outage.from - span.from);
    span.from = outage.to;
  }
  return std::max(longest, span.to - span.from);
}

class Judge {
 public:
  Verdict verdict;

  explicit Judge(Millis ttl) : ttl_(ttl) {}

  // In the order of time.
  void take(const Event& event) {
    course_.take(event);
    switch (event.kind) {
      case 'A': asked_[event.who] = event.at; break;
      case 'G': judge_grant(event); break;
      case 'B':
        if (event.token < highest_) {
          blame("the holder of token " + std::to_string(event.token) + " still believed in it at " +
                std::to_string(event.at) + ", after token " + std::to_string(highest_) +
                " was granted");
        }
        break;
      case 'W': ++verdict.writes; break;
      case 'R': ++verdict.refused; break;
      default:
        if (std::string_view("ELDPCOU").find(event.kind) == std::string_view::npos) {
          blame("an unknown event");
        }
    }
  }

  // When all was taken.
  void judge_orphans() {
    course_.finish();
    // From the highest token down: `next` is when one above was first granted.
    std::int64_t next = kNever;
    auto above = granted_.rbegin();
    std::stable_sort(course_.freed.begin(), course_.freed.end(),
                     [](const Freed& a, const Freed& b) { return a.token > b.token; });
    for (const Freed& freed : course_.freed) {
      for (; above != granted_.rend() && above->first > freed.token; ++above) {
        next = std::min(next, above->second);
      }
      judge_freed(freed, {freed.span.from, std::min(freed.span.to, next)});
    }
  }

  void judge_writes(const std::vector<Token>& written) {
    Token last = 0;
    for (const Token token : written) {
      if (token <= last) {
        blame("a write under token " + std::to_string(token) + " was committed after one under " +
              std::to_string(last));
      }
      last = token;
    }
  }

 private:
  void blame(std::string problem) {
    if (verdict.problems.size() < 10) verdict.problems.push_back(std::move(problem));
  }

  void judge_grant(const Event& event) {
    ++verdict.grants;
    const std::string token = std::to_string(event.token);
    if (!granted_.emplace(event.token, event.at).second) {
      blame("token " + token + " was granted twice");
    }
    const auto since = asked_.contains(event.who) ? asked_[event.who] : event.at;
    const auto later = highest_at_.lower_bound(since);
    if (later != highest_at_.begin() && std::prev(later)->second > event.token) {
      blame("token " + token + " was asked for after token " +
            std::to_string(std::prev(later)->second) + " was granted");
    }
    highest_ = std::max(highest_, event.token);
    highest_at_[event.at] = highest_;
  }

  void judge_freed(const Freed& freed, const Span& free) {
    const auto limit = std::chrono::nanoseconds(ttl_ + kSlack).count();
    if (!freed.orphan && free.to - free.from <= limit) return;
    std::int64_t longest = 0;
    for (const Span& wait : course_.waits) {
      const Span both{std::max(free.from, wait.from), std::min(free.to, wait.to)};
      if (both.to > both.from) longest = std::max(longest, longest_part(both, course_.outages));
    }
    const auto waited = std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(longest));
    if (freed.orphan) {
      ++verdict.orphans;
      verdict.longest_orphan = std::max(verdict.longest_orphan, waited);
    }
    if (longest <= limit) return;
    blame("token " + std::to_string(freed.token) + " was nobody's and kept somebody waiting for " +
          std::to_string(waited.count()) + " ms, with a TTL of " + std::to_string(ttl_.count()));
  }

  Millis ttl_;
  Course course_;
  std::map<Token, std::int64_t> granted_;      // and when that was noted
  std::map<std::int64_t, Token> highest_at_;   // of all grants up to that time
  std::map<std::string, std::int64_t> asked_;  // by whom, and when last
  Token highest_ = 0;  // of all grants that were complete before the event at hand
};

}  // namespace

Verdict judge(std::vector<Event> events, const std::vector<Token>& written, Millis ttl) {
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  Judge judge(ttl);
  for (const Event& event : events) judge.take(event);
  judge.judge_orphans();
  judge.judge_writes(written);
  return judge.verdict;
}

Verdict judge(const std::filesystem::path& histories, const std::filesystem::path& data,
              Millis ttl) {
  std::vector<Event> events;
  for (const auto& entry : std::filesystem::directory_iterator(histories)) {
    std::ifstream file(entry.path());
    Event event{.who = entry.path().filename()};
    while (file >> event.kind >> event.at >> event.token) events.push_back(event);
  }
  return judge(std::move(events), read_written(data), ttl);
}

}  // namespace baton::test
