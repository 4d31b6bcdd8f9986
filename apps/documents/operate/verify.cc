#include "apps/documents/operate/verify.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/common/start.h"
#include "apps/documents/common/topology.h"
#include "apps/documents/common/work.h"

namespace baton::documents {
namespace {

constexpr Millis kLookAgain{200};
constexpr std::size_t kMostLines = 50;

// Which channels an event must have gone out on.
std::vector<std::string> expected_channels(const std::string& event) {
  if (event == "DocumentValidated") return {"push"};
  if (event == "DocumentRejected") return {"email", "push"};
  if (event == "DocumentEnriched") return {"email"};
  if (event == "DocumentFailed") return {"email", "sms"};
  return {};
}

class Judge {
 public:
  explicit Judge(const World& world) : world_(world) {}

  Verdict judge() {
    for (const auto& trouble : world_.troubles) look_at(trouble);
    for (const auto& [id, document] : world_.documents) look_at(id, document);
    for (const auto& [id, verdict] : world_.verdicts) known(id, "validation");
    for (const auto& id : world_.enriched) known(id, "enrichment");
    look_at_outboxes();
    look_at_audit();
    look_at_notifications();
    look_at_spool();
    verdict_.events = static_cast<std::int64_t>(world_.recorded.size());
    verdict_.sealed = world_.chain.head.sequence;
    verdict_.notifications = static_cast<std::int64_t>(world_.told.size());
    return std::move(verdict_);
  }

 private:
  void wrong(std::string line) { verdict_.wrong.push_back(std::move(line)); }
  void unfinished(std::string line) { verdict_.unfinished.push_back(std::move(line)); }
  void known(const std::string& id, const std::string& service) {
    if (!world_.documents.contains(id)) {
      wrong(service + " has document " + id + ", which was never submitted");
    }
  }

  void look_at(const World::Trouble& trouble) {
    if (trouble.status == "DEAD") {
      verdict_.dead.push_back(trouble);
      dead_.insert({trouble.service, trouble.document});
    } else if (trouble.status != "DISCARDED") {
      unfinished(trouble.service + " tries " + trouble.type + " of document " + trouble.document +
                 " again: " + trouble.error);
    }
  }

  // What the rows of the stages say that it must be.
  [[nodiscard]] World::Document expected(const std::string& id) const {
    const auto verdict = world_.verdicts.find(id);
    if (world_.enriched.contains(id)) return {.status = "ENRICHED"};
    if (dead_.contains({"enrichment", id})) return {.status = "FAILED", .stage = "enrichment"};
    if (verdict != world_.verdicts.end()) return {.status = verdict->second};
    if (dead_.contains({"validation", id})) return {.status = "FAILED", .stage = "validation"};
    return {.status = "UPLOADED"};
  }

  void look_at(const std::string& id, const World::Document& document) {
    ++verdict_.by_status[document.status];
    const World::Document should = expected(id);
    const bool final =
        should.status == "REJECTED" || should.status == "FAILED" || should.status == "ENRICHED";
    if (!final) {
      unfinished("document " + id + " is " + should.status);
    } else if (document.status != should.status || document.stage != should.stage) {
      unfinished("document " + id + " is " + document.status + ", but should be " + should.status +
                 (should.stage.empty() ? "" : " (" + should.stage + ")"));
    }
    if (world_.enriched.contains(id) && verdict_of(id) != "VALIDATED") {
      wrong("document " + id + " was enriched, but not validated");
    }
  }
  [[nodiscard]] std::string verdict_of(const std::string& id) const {
    const auto found = world_.verdicts.find(id);
    return found == world_.verdicts.end() ? "" : found->second;
  }

  void look_at_outboxes() {
    for (const auto& event : world_.emitted) {
      if (event.status == "PENDING") {
        unfinished(event.type + " " + event.event_id + " was not published");
      } else if (event.status != "SENT") {
        wrong(event.type + " " + event.event_id + " is " + event.status + " in the outbox of " +
              event.service);
      }
      known(event.document, "the outbox of " + event.service);
      emitted_.insert(event.event_id);
    }
  }

  // Every event that was emitted is recorded, none was invented, and of each document there is
  // exactly one of each event that it must have had.
  void look_at_audit() {
    std::set<std::string> recorded;
    std::map<std::pair<std::string, std::string>, int> count;  // by document and type
    for (const auto& event : world_.recorded) {
      if (!recorded.insert(event.event_id).second) {
        wrong("event " + event.event_id + " was recorded twice");
      }
      if (!emitted_.contains(event.event_id)) {
        wrong("audit has " + event.type + " " + event.event_id + ", which no service has emitted");
      }
      ++count[{event.document, event.type}];
    }
    for (const auto& event : world_.emitted) {
      if (!recorded.contains(event.event_id)) {
        unfinished(event.type + " " + event.event_id + " of document " + event.document +
                   " was not recorded");
      }
    }
    const auto once = [&](const std::string& id, std::string_view type, bool expected) {
      const int times = count[{id, std::string(type)}];
      if (times > (expected ? 1 : 0)) {
        wrong("document " + id + " has " + std::to_string(times) + " " + std::string(type) +
              ", and should have " + (expected ? "one" : "none"));
      } else if (times == 0 && expected) {
        unfinished("document " + id + " has no " + std::string(type));
      }
    };
    for (const auto& [id, document] : world_.documents) {
      once(id, type::uploaded, true);
      once(id, type::validated, verdict_of(id) == "VALIDATED");
      once(id, type::rejected, verdict_of(id) == "REJECTED");
      once(id, type::enriched, world_.enriched.contains(id));
      const bool gave_up = dead_.contains({"validation", id}) || dead_.contains({"enrichment", id});
      if (gave_up && count[{id, std::string(type::failed)}] == 0) {
        unfinished("document " + id + " is a dead letter without DocumentFailed");
      }
    }
    for (const std::string& line : world_.chain.wrong) wrong("audit: " + line);
    if (world_.chain.unsealed > 0) {
      unfinished(std::to_string(world_.chain.unsealed) + " rows of the audit log are not sealed");
    }
  }

  void look_at_notifications() {
    std::map<World::Told, int> told;
    for (const auto& one : world_.told) {
      if (++told[one] == 2) {
        wrong(one.user + " was told twice of event " + one.event_id + " by " + one.channel);
      }
    }
    for (const auto& event : world_.recorded) {
      const auto document = world_.documents.find(event.document);
      if (document == world_.documents.end()) continue;
      const std::string& owner = document->second.owner;
      for (const std::string& channel : expected_channels(event.type)) {
        const bool was_told = told.erase({event.event_id, channel, owner}) > 0;
        if (!was_told && !world_.switched_off.contains({owner, channel})) {
          unfinished(owner + " was not told of " + event.type + " " + event.event_id + " by " +
                     channel);
        }
      }
    }
    for (const auto& [one, times] : told) {
      wrong(one.user + " was told of event " + one.event_id + " by " + one.channel +
            ", and should not have been");
    }
  }

  // A message may be ahead of its row, if the service died in between.
  void look_at_spool() {
    if (!world_.spooled) return;
    std::map<std::string, int> sent;
    for (const std::string& key : *world_.spooled) {
      if (++sent[key] == 2) wrong("the message " + key + " was sent twice");
    }
    for (const auto& one : world_.told) {
      const std::string key = one.event_id + ":" + one.channel + ":" + one.user;
      if (sent.erase(key) == 0)
        wrong("the message " + key + " is in the history, but was not sent");
    }
    for (const auto& [key, times] : sent)
      unfinished("the message " + key + " is not in the history");
  }

  const World& world_;
  Verdict verdict_;
  std::set<std::pair<std::string, std::string>> dead_;  // service, document
  std::set<std::string> emitted_;
};

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
  std::printf("%lld documents: %s\n", static_cast<long long>(documents), by_status.c_str());
  std::printf("%lld events recorded, %lld sealed, %lld notifications, %zu dead letters\n",
              static_cast<long long>(verdict.events), static_cast<long long>(verdict.sealed),
              static_cast<long long>(verdict.notifications), verdict.dead.size());
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

Verdict judge(const World& world) { return Judge(world).judge(); }

Result<int> verify(const Places& places, Millis wait, bool json) {
  const Deadline until = BootClock::now() + wait;
  for (;;) {
    auto world = read_world(places);
    if (!world) return world.error();
    const Verdict verdict = judge(*world);
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
