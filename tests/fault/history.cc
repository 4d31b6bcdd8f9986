#include "history.h"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace baton::test {
namespace {

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

}  // namespace

Verdict judge(std::vector<Event> events, const std::vector<Token>& written) {
  Verdict verdict;
  const auto blame = [&](std::string problem) {
    if (verdict.problems.size() < 10) verdict.problems.push_back(std::move(problem));
  };
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  std::set<Token> granted;
  Token highest = 0;  // of all grants that were complete before the event at hand
  for (const Event& event : events) {
    const std::string token = std::to_string(event.token);
    switch (event.kind) {
      case 'G':
        ++verdict.grants;
        if (!granted.insert(event.token).second) blame("token " + token + " was granted twice");
        highest = std::max(highest, event.token);
        break;
      case 'B':
        if (event.token < highest) {
          blame("the holder of token " + token + " still believed in it at " +
                std::to_string(event.at) + ", after token " + std::to_string(highest) +
                " was granted");
        }
        break;
      case 'W': ++verdict.writes; break;
      case 'R': ++verdict.refused; break;
      default: blame("an unknown event");
    }
  }
  Token last = 0;
  for (const Token token : written) {
    if (token <= last) {
      blame("a write under token " + std::to_string(token) + " was committed after one under " +
            std::to_string(last));
    }
    last = token;
  }
  return verdict;
}

Verdict judge(const std::filesystem::path& histories, const std::filesystem::path& data) {
  std::vector<Event> events;
  for (const auto& entry : std::filesystem::directory_iterator(histories)) {
    std::ifstream file(entry.path());
    Event event;
    while (file >> event.kind >> event.at >> event.token) events.push_back(event);
  }
  return judge(std::move(events), read_written(data));
}

}  // namespace baton::test
