// What `documents verify` says of the five databases. The services' rules are said here once more,
// so that a mistake in theirs is not repeated.

#include <algorithm>

#include "apps/documents/operate/verify.h"

namespace baton::documents {
namespace {

// Which channels an event must have gone out on.
std::vector<std::string> expected_channels(const std::string& event) {
  if (event == "DocumentValidated") return {"push"};
  if (event == "DocumentRejected") return {"email", "push"};
  if (event == "DocumentEnriched") return {"email"};
  if (event == "DocumentFailed") return {"email", "sms"};
  return {};
}

// Which services must have decided about an event.
std::vector<std::string> expected_consumers(const std::string& event) {
  if (event == "DocumentUploaded") return {"validation", "audit"};
  if (event == "DocumentValidated") return {"enrichment", "audit", "notification", "ingestion"};
  if (!expected_channels(event).empty()) return {"audit", "notification", "ingestion"};
  return {"audit"};
}

std::string times(int count, const std::string& what) { return std::to_string(count) + " " + what; }

class Judge {
 public:
  Judge(const World& world, const VerifyOptions& options) : world_(world), options_(options) {}

  Verdict judge() {
    for (const auto& trouble : world_.troubles) look_at(trouble);
    look_at_outboxes();
    for (const auto& [id, document] : world_.documents) look_at(id, document);
    for (const auto& [id, verdict] : world_.verdicts) known(id, "validation");
    for (const auto& id : world_.enriched) known(id, "enrichment");
    look_at_ledgers();
    look_at_audit();
    look_at_notifications();
    look_at_spool();
    verdict_.events = static_cast<std::int64_t>(world_.recorded.size());
    verdict_.sealed = world_.chain.head.sequence;
    verdict_.notifications = static_cast<std::int64_t>(world_.told.size());
    return std::move(verdict_);
  }

 private:
  using Pair = std::pair<std::string, std::string>;

  void wrong(std::string line) { verdict_.wrong.push_back(std::move(line)); }
  void unfinished(std::string line) { verdict_.unfinished.push_back(std::move(line)); }
  void known(const std::string& id, const std::string& service) {
    if (!world_.documents.contains(id)) {
      wrong(service + " has document " + id + ", which was never submitted");
    }
  }

  void look_at(const World::Trouble& trouble) {
    in_trouble_.insert({trouble.service, trouble.event_id});
    if (trouble.status == "DEAD") {
      verdict_.dead.push_back(trouble);
      dead_.insert({trouble.service, trouble.document});
    } else if (trouble.status == "DISCARDED") {
      discarded_.insert({trouble.service, trouble.document});
    } else {
      unfinished(trouble.service + " tries " + trouble.type + " of document " + trouble.document +
                 " again: " + trouble.error);
    }
  }

  // A discarded event has failed its document if it was a dead letter before.
  [[nodiscard]] bool has_failed(const std::string& stage, const std::string& id) const {
    return dead_.contains({stage, id}) ||
           (discarded_.contains({stage, id}) && failed_.contains({stage, id}));
  }

  // What the rows of the stages say that it must be.
  [[nodiscard]] World::Document expected(const std::string& id) const {
    const auto verdict = world_.verdicts.find(id);
    if (world_.enriched.contains(id)) return {.status = "ENRICHED"};
    if (has_failed("enrichment", id)) return {.status = "FAILED", .stage = "enrichment"};
    if (verdict != world_.verdicts.end()) return {.status = verdict->second};
    if (has_failed("validation", id)) return {.status = "FAILED", .stage = "validation"};
    return {.status = "UPLOADED"};
  }
  // Nothing will happen to it any more.
  [[nodiscard]] bool is_final(const std::string& id, const std::string& status) const {
    if (status == "VALIDATED") return discarded_.contains({"enrichment", id});
    if (status == "UPLOADED") return discarded_.contains({"validation", id});
    return true;
  }

  void look_at(const std::string& id, const World::Document& document) {
    ++verdict_.by_status[document.status];
    const World::Document should = expected(id);
    if (!is_final(id, should.status)) {
      unfinished("document " + id + " is " + should.status);
    } else if (document.status != should.status || document.stage != should.stage) {
      unfinished("document " + id + " is " + document.status + ", but should be " + should.status +
                 (should.stage.empty() ? "" : " (" + should.stage + ")"));
    }
    if (world_.enriched.contains(id) && verdict_of(id) != "VALIDATED") {
      wrong("document " + id + " was enriched, but not validated");
    }
    if (dead_.contains({"validation", id}) && world_.verdicts.contains(id)) {
      wrong("validation has given up document " + id + ", and has a verdict on it");
    }
    if (dead_.contains({"enrichment", id}) && world_.enriched.contains(id)) {
      wrong("enrichment has given up document " + id + ", and has enriched it");
    }
  }
  [[nodiscard]] std::string verdict_of(const std::string& id) const {
    const auto found = world_.verdicts.find(id);
    return found == world_.verdicts.end() ? "" : found->second;
  }

  void look_at_outboxes() {
    std::map<Pair, int> failures;  // stage and cause
    for (const auto& event : world_.emitted) {
      if (event.status == "PENDING") {
        unfinished(event.type + " " + event.event_id + " was not published");
      } else if (event.status != "SENT") {
        wrong(event.type + " " + event.event_id + " is " + event.status + " in the outbox of " +
              event.service);
      }
      known(event.document, "the outbox of " + event.service);
      emitted_[event.event_id] = &event;
      const auto facts = world_.facts.find({event.document, event.type});
      if (facts != world_.facts.end() && facts->second != event.facts) {
        wrong(event.type + " " + event.event_id + " does not say what the row of document " +
              event.document + " does");
      }
      if (event.type != "DocumentFailed") continue;
      failed_.insert({event.service, event.document});
      if (++failures[{event.service, event.cause}] == 2 && !options_.redriven) {
        wrong("document " + event.document + " has failed twice in " + event.service +
              " (after a redrive that failed, too: --redriven)");
      }
    }
  }

  // Every event was decided by each service that consumes it, and what is still to be tried again,
  // or is a dead letter, is there.
  void look_at_ledgers() {
    std::set<Pair> decided;
    for (const auto& one : world_.decided) {
      decided.insert({one.service, one.event_id});
      const bool kept =
          one.outcome == "retrying" || one.outcome == "dead" || one.outcome == "discarded";
      if (kept && !in_trouble_.contains({one.service, one.event_id})) {
        unfinished(one.service + " has event " + one.event_id + " as " + one.outcome +
                   ", but not in its inbox");
      }
    }
    for (const auto& event : world_.emitted) {
      for (const std::string& service : expected_consumers(event.type)) {
        if (decided.contains({service, event.event_id})) continue;
        unfinished(service + " has not handled " + event.type + " " + event.event_id +
                   " of document " + event.document);
      }
    }
  }

  // Every event that was emitted is recorded as it was, none was invented, and of each document
  // there is exactly one of each event that it must have had.
  void look_at_audit() {
    std::set<std::string> recorded;
    std::map<Pair, int> count;  // by document and type
    for (const auto& event : world_.recorded) {
      const std::string what = event.type + " " + event.event_id;
      if (!recorded.insert(event.event_id).second) wrong(what + " was recorded twice");
      ++count[{event.document, event.type}];
      const auto emitted = emitted_.find(event.event_id);
      if (emitted == emitted_.end()) {
        if (!event.old) wrong("audit has " + what + ", which no service has emitted");
      } else if (event.type != emitted->second->type ||
                 event.document != emitted->second->document ||
                 event.digest != emitted->second->digest) {
        wrong(what + " was not recorded as it was emitted");
      }
    }
    for (const auto& event : world_.emitted) {
      if (!recorded.contains(event.event_id)) {
        unfinished(event.type + " " + event.event_id + " of document " + event.document +
                   " was not recorded");
      }
    }
    for (const auto& [id, document] : world_.documents) look_at_events(id, count);
    for (const std::string& line : world_.chain.wrong) wrong("audit: " + line);
    if (world_.chain.unsealed > 0) {
      unfinished(times(static_cast<int>(world_.chain.unsealed), "rows of the audit log") +
                 " are not sealed");
    }
  }

  void look_at_events(const std::string& id, std::map<Pair, int>& count) {
    const auto once = [&](const std::string& type, bool expected) {
      const int found = count[{id, type}];
      if (found > (expected ? 1 : 0)) {
        wrong("document " + id + " has " + times(found, type) + ", and should have " +
              (expected ? "one" : "none"));
      } else if (found == 0 && expected) {
        unfinished("document " + id + " has no " + type);
      }
    };
    once("DocumentUploaded", true);
    once("DocumentValidated", verdict_of(id) == "VALIDATED");
    once("DocumentRejected", verdict_of(id) == "REJECTED");
    once("DocumentEnriched", world_.enriched.contains(id));
    const bool gave_up = dead_.contains({"validation", id}) || dead_.contains({"enrichment", id});
    if (gave_up && count[{id, "DocumentFailed"}] == 0) {
      unfinished("document " + id + " is a dead letter without DocumentFailed");
    }
  }

  // Whether a user wanted an event on a channel; nothing: the preference was changed since.
  [[nodiscard]] std::optional<bool> wanted(const std::string& user, const std::string& channel,
                                           const std::string& occurred_at) const {
    const auto found = world_.preferences.find({user, channel});
    if (found == world_.preferences.end()) return true;
    if (occurred_at.empty() || found->second.updated_at >= occurred_at) return std::nullopt;
    return found->second.on;
  }

  // Each event once on each of its channels, and nothing else.
  void look_at_notifications() {
    struct Event {
      std::string type, document, occurred_at;
    };
    std::map<std::string, Event> events;  // by id
    for (const auto& one : world_.emitted) events[one.event_id] = {one.type, one.document, ""};
    for (const auto& one : world_.recorded) {
      events[one.event_id] = {one.type, one.document, one.occurred_at};
    }
    std::map<World::Told, int> told;
    for (const auto& one : world_.told) {
      if (++told[one] == 2) {
        wrong(one.user + " was told twice of event " + one.event_id + " by " + one.channel);
      }
    }
    for (const auto& [id, event] : events) {
      const auto document = world_.documents.find(event.document);
      if (document == world_.documents.end()) continue;
      const std::string& owner = document->second.owner;
      for (const std::string& channel : expected_channels(event.type)) {
        const auto found = told.find({id, channel, owner});
        const auto wants = wanted(owner, channel, event.occurred_at);
        if (found == told.end()) {
          if (wants.value_or(false)) {
            unfinished(owner + " was not told of " + event.type + " " + id + " by " + channel);
          }
          continue;
        }
        if (found->first.document != event.document) {
          wrong("the history has " + event.type + " " + id + " for another document");
        }
        if (wants.value_or(true)) told.erase(found);
      }
    }
    for (const auto& [one, count] : told) {
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
      if (sent.erase(key) == 0) {
        wrong("the message " + key + " is in the history, but was not sent");
      }
    }
    for (const auto& [key, count] : sent) {
      unfinished("the message " + key + " is not in the history");
    }
  }

  const World& world_;
  const VerifyOptions& options_;
  Verdict verdict_;
  std::set<Pair> dead_;        // service, document
  std::set<Pair> discarded_;   // service, document
  std::set<Pair> failed_;      // service that has emitted DocumentFailed, document
  std::set<Pair> in_trouble_;  // service, event
  std::map<std::string, const World::Emitted*> emitted_;
};

}  // namespace

Verdict judge(const World& world, const VerifyOptions& options) {
  return Judge(world, options).judge();
}

}  // namespace baton::documents
