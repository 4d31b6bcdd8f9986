#include "apps/documents/operate/verify.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/common/start.h"
#include "apps/documents/common/work.h"

namespace baton::documents {
namespace {

constexpr Millis kLookAgain{200};
constexpr std::size_t kMostLines = 50;

void print_lines(const char* heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::printf("%s (%zu):\n", heading, lines.size());
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    std::printf("  %s\n", lines[i].c_str());
  }
}

void print(const Verdict& verdict) {
  std::int64_t documents = 0;
  std::string by_status;
  for (const auto& [status, count] : verdict.by_status) {
    documents += count;
    by_status += (by_status.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  }
  std::printf("%lld documents: %s\n", static_cast<long long>(documents), by_status.c_str());
  std::printf("%lld events recorded, %lld sealed, %lld notifications, %zu dead letters\n",
              static_cast<long long>(verdict.events), static_cast<long long>(verdict.sealed),
              static_cast<long long>(verdict.notifications), verdict.dead.size());
  for (const auto& dead : verdict.dead) {
    std::printf("  dead: %s of document %s in %s: %s\n", dead.type.c_str(), dead.document.c_str(),
                dead.service.c_str(), dead.error.c_str());
  }
  print_lines("wrong", verdict.wrong);
  print_lines("unfinished", verdict.unfinished);
  std::printf("%s\n", verdict.well() ? "ok: every document is final, nothing is lost or doubled"
                                     : "NOT ok");
}

void print_json(const Verdict& verdict) {
  nlohmann::json dead = nlohmann::json::array();
  for (const auto& one : verdict.dead) {
    dead.push_back({{"service", one.service},
                    {"eventId", one.event_id},
                    {"eventType", one.type},
                    {"documentId", one.document},
                    {"error", one.error}});
  }
  const nlohmann::json body = {{"ok", verdict.well()},
                               {"documents", verdict.by_status},
                               {"events", verdict.events},
                               {"sealed", verdict.sealed},
                               {"notifications", verdict.notifications},
                               {"deadLetters", dead},
                               {"wrong", verdict.wrong},
                               {"unfinished", verdict.unfinished}};
  std::printf("%s\n", dump(body).c_str());
}

}  // namespace

Result<int> verify(const Places& places, Millis wait, bool json, const VerifyOptions& options) {
  const Deadline until = BootClock::now() + wait;
  for (;;) {
    auto world = read_world(places);
    if (!world) return world.error();
    const Verdict verdict = judge(*world, options);
    if (verdict.unfinished.empty() || BootClock::now() >= until) {
      json ? print_json(verdict) : print(verdict);
      return verdict.well() ? apps::kOk : apps::kError;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace baton::documents
