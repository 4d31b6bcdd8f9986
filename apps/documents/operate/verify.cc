#include "apps/documents/operate/verify.h"

#include <unistd.h>

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
  if (lines.size() > kMostLines) std::printf("  … and %zu more\n", lines.size() - kMostLines);
}

// Those with the same error behind one another, two documents a line.
void print_dead(const std::vector<World::Trouble>& dead) {
  std::map<std::string, std::vector<std::string>> documents;
  for (const auto& one : dead) {
    documents[one.type + " in " + one.service + ":\n    " + one.error].push_back(one.document);
  }
  for (const auto& [what, ids] : documents) {
    std::printf("  %zu %s\n", ids.size(), what.c_str());
    for (std::size_t i = 0; i < std::min(ids.size(), kMostLines); ++i) {
      std::printf(i % 2 == 0 ? "    %s" : "  %s\n", ids[i].c_str());
    }
    if (std::min(ids.size(), kMostLines) % 2 == 1) std::printf("\n");
    if (ids.size() > kMostLines) std::printf("    … and %zu more\n", ids.size() - kMostLines);
  }
}

// On a terminal, while something is waited for.
void show_progress(const Verdict& verdict, Millis left) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%zu things are unfinished; waiting for %lld s more \x1b[K",
               verdict.unfinished.size(), static_cast<long long>(left.count() / 1'000));
}

void end_progress() {
  if (::isatty(STDERR_FILENO) != 0) std::fputs("\r\x1b[K", stderr);
}

void print(const Verdict& verdict) {
  std::int64_t documents = 0;
  std::string by_status;
  for (const auto& [status, count] : verdict.by_status) {
    documents += count;
    by_status += (by_status.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  }
  std::printf("%lld document%s: %s\n", static_cast<long long>(documents), documents == 1 ? "" : "s",
              by_status.c_str());
  std::printf("%lld events recorded, %lld sealed, %lld notifications, %zu dead letter%s\n",
              static_cast<long long>(verdict.events), static_cast<long long>(verdict.sealed),
              static_cast<long long>(verdict.notifications), verdict.dead.size(),
              verdict.dead.size() == 1 ? "" : "s");
  print_dead(verdict.dead);
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
      end_progress();
      json ? print_json(verdict) : print(verdict);
      return verdict.well() ? apps::kOk : apps::kError;
    }
    show_progress(verdict, std::chrono::duration_cast<Millis>(until - BootClock::now()));
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace baton::documents
