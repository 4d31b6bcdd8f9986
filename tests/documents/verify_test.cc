// What `documents verify` calls wrong: each case changes one thing in a world that is well.

#include "apps/documents/operate/verify.h"

#include <gtest/gtest.h>

namespace baton::documents {
namespace {

// All services that an event goes to have decided about it.
void decide(World& world, const std::string& id, const std::string& type) {
  std::vector<std::string> services = {"audit"};
  if (type == "DocumentUploaded") services.emplace_back("validation");
  if (type == "DocumentValidated") services.emplace_back("enrichment");
  if (type != "DocumentUploaded") {
    services.emplace_back("ingestion");
    services.emplace_back("notification");
  }
  for (const std::string& service : services) world.decided.push_back({service, id, "done"});
}

// One document of each final state.
World a_world() {
  World world;
  world.documents = {{"e", {.owner = "ann", .status = "ENRICHED"}},
                     {"r", {.owner = "ann", .status = "REJECTED"}},
                     {"f", {.owner = "ann", .status = "FAILED", .stage = "enrichment"}}};
  world.verdicts = {{"e", "VALIDATED"}, {"r", "REJECTED"}, {"f", "VALIDATED"}};
  world.enriched = {"e"};
  const auto event = [&](const std::string& service, const std::string& id, const std::string& type,
                         const std::string& document, std::vector<std::string> channels) {
    decide(world, id, type);
    world.emitted.push_back({service, id, type, document, "SENT"});
    world.recorded.push_back({id, type, document, "", "2026-01-02"});
    for (std::string& channel : channels) {
      world.told.push_back({id, std::move(channel), "ann", document});
    }
  };
  for (const std::string document : {"e", "r", "f"}) {
    event("ingestion", "u" + document, "DocumentUploaded", document, {});
  }
  event("validation", "ve", "DocumentValidated", "e", {"push"});
  event("validation", "vf", "DocumentValidated", "f", {"push"});
  event("validation", "rr", "DocumentRejected", "r", {"email", "push"});
  event("enrichment", "ee", "DocumentEnriched", "e", {"email"});
  event("enrichment", "ff", "DocumentFailed", "f", {"email", "sms"});
  world.troubles = {{"enrichment", "DEAD", "vf", "DocumentValidated", "f", "poison"}};
  world.chain.head.sequence = 8;
  world.chain.rows = 8;
  world.spooled.emplace();
  for (const auto& one : world.told) {
    world.spooled->push_back(one.event_id + ":" + one.channel + ":" + one.user);
  }
  return world;
}

struct Case {
  const char* name;
  void (*change)(World&);
};

const Case kCases[] = {
    {"lost_document_row", [](World& world) { world.documents.erase("e"); }},
    {"state_below_the_true_one", [](World& world) { world.documents["e"].status = "VALIDATED"; }},
    {"state_above_the_true_one", [](World& world) { world.documents["f"].status = "ENRICHED"; }},
    {"lost_verdict", [](World& world) { world.verdicts.erase("r"); }},
    {"lost_enrichment", [](World& world) { world.enriched.clear(); }},
    {"enriched_though_rejected", [](World& world) { world.enriched.insert("r"); }},
    {"invented_document", [](World& world) { world.enriched.insert("x"); }},
    {"event_not_published", [](World& world) { world.emitted[0].status = "PENDING"; }},
    {"event_failed_to_publish", [](World& world) { world.emitted[0].status = "FAILED"; }},
    {"event_not_recorded", [](World& world) { world.recorded.pop_back(); }},
    {"event_recorded_twice",
     [](World& world) { world.recorded.push_back(world.recorded.front()); }},
    {"event_that_nobody_emitted",
     [](World& world) {
       world.recorded.push_back({"x", "DocumentFailed", "f"});
     }},
    {"effect_doubled_without_idempotency",
     [](World& world) {
       decide(world, "v2", "DocumentValidated");
       world.emitted.push_back({"validation", "v2", "DocumentValidated", "e", "SENT"});
       world.recorded.push_back({"v2", "DocumentValidated", "e"});
       world.told.push_back({"v2", "push", "ann", "e"});
       world.spooled->push_back("v2:push:ann");
     }},
    {"event_recorded_with_another_payload",
     [](World& world) { world.recorded.front().digest = "other"; }},
    {"event_recorded_for_another_document",
     [](World& world) { world.recorded.back().document = "e"; }},
    {"event_that_does_not_say_what_its_row_does",
     [](World& world) {
       world.facts[{"e", "DocumentEnriched"}] = "other";
     }},
    {"event_that_a_service_has_not_handled", [](World& world) { world.decided.pop_back(); }},
    {"retry_without_its_message", [](World& world) { world.decided.front().outcome = "retrying"; }},
    {"given_up_although_it_was_done",
     [](World& world) {
       world.troubles.push_back({"validation", "DEAD", "ue", "DocumentUploaded", "e", "twice"});
     }},
    {"row_not_sealed", [](World& world) { world.chain.unsealed = 1; }},
    {"broken_chain", [](World& world) { world.chain.wrong = {"seal 3 does not fit"}; }},
    {"notification_lost",
     [](World& world) {
       world.told.pop_back();
       world.spooled->pop_back();
     }},
    {"notification_doubled", [](World& world) { world.told.push_back(world.told.front()); }},
    {"notification_by_a_wrong_channel",
     [](World& world) {
       world.told.push_back({"ve", "sms", "ann", "e"});
       world.spooled->push_back("ve:sms:ann");
     }},
    {"notification_of_another_document", [](World& world) { world.told.back().document = "e"; }},
    {"notification_by_a_channel_that_is_switched_off",
     [](World& world) {
       world.preferences[{"ann", "sms"}] = {.on = false, .updated_at = "2026-01-01"};
     }},
    {"message_not_sent", [](World& world) { world.spooled->pop_back(); }},
    {"message_sent_twice", [](World& world) { world.spooled->push_back(world.spooled->front()); }},
    {"retry_outstanding",
     [](World& world) {
       world.troubles.push_back({"audit", "RETRY", "ve", "DocumentValidated", "e", ""});
     }},
    {"dead_letter_without_compensation",
     [](World& world) {
       world.emitted.pop_back();
       world.recorded.pop_back();
       world.told.resize(world.told.size() - 2);
       world.spooled->resize(world.spooled->size() - 2);
     }},
};

class VerifyFinds : public testing::TestWithParam<Case> {};

TEST_P(VerifyFinds, it) {
  World world = a_world();
  GetParam().change(world);
  EXPECT_FALSE(judge(world).well());
}
INSTANTIATE_TEST_SUITE_P(verify, VerifyFinds, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(verify, a_world_that_is_well_has_nothing_wrong) {
  const Verdict verdict = judge(a_world());
  EXPECT_TRUE(verdict.well()) << testing::PrintToString(verdict.wrong)
                              << testing::PrintToString(verdict.unfinished);
  EXPECT_EQ(verdict.dead.size(), 1U);
}

TEST(verify, a_channel_that_was_switched_off_is_not_missed) {
  World world = a_world();
  world.told.pop_back();
  world.spooled->pop_back();
  world.preferences[{"ann", "sms"}] = {.on = false, .updated_at = "2026-01-01"};
  EXPECT_TRUE(judge(world).well());
}

TEST(verify, nobody_knows_what_was_wanted_before_a_preference_was_changed) {
  World world = a_world();
  world.preferences[{"ann", "sms"}] = {.on = false, .updated_at = "2026-01-03"};
  EXPECT_TRUE(judge(world).well()) << "told before it was switched off";
  world.told.pop_back();
  world.spooled->pop_back();
  world.preferences[{"ann", "sms"}].on = true;
  EXPECT_TRUE(judge(world).well()) << "not told before it was switched on";
}

TEST(verify, what_the_outbox_has_forgotten_is_not_missed) {
  World world = a_world();
  for (auto& event : world.recorded) event.old = true;
  world.emitted.clear();
  EXPECT_TRUE(judge(world).well());
}

TEST(verify, a_document_may_fail_twice_if_its_dead_letter_was_redriven) {
  World world = a_world();
  decide(world, "f2", "DocumentFailed");
  world.emitted.push_back({"enrichment", "f2", "DocumentFailed", "f", "SENT"});
  world.recorded.push_back({"f2", "DocumentFailed", "f"});
  for (const char* channel : {"email", "sms"}) {
    world.told.push_back({"f2", channel, "ann", "f"});
    world.spooled->push_back("f2:" + std::string(channel) + ":ann");
  }
  EXPECT_FALSE(judge(world).well());
  EXPECT_TRUE(judge(world, {.redriven = true}).well());
}

TEST(verify, a_dead_letter_that_was_discarded_leaves_its_document_failed) {
  World world = a_world();
  world.troubles.front().status = "DISCARDED";
  EXPECT_TRUE(judge(world).well());
  EXPECT_TRUE(judge(world).dead.empty());
}

TEST(verify, a_redriven_document_is_enriched_although_it_had_failed) {
  World world = a_world();
  world.troubles.clear();
  world.enriched.insert("f");
  world.documents["f"] = {.owner = "ann", .status = "ENRICHED"};
  decide(world, "ef", "DocumentEnriched");
  world.emitted.push_back({"enrichment", "ef", "DocumentEnriched", "f", "SENT"});
  world.recorded.push_back({"ef", "DocumentEnriched", "f"});
  world.told.push_back({"ef", "email", "ann", "f"});
  world.spooled->push_back("ef:email:ann");
  EXPECT_TRUE(judge(world).well());
}

}  // namespace
}  // namespace baton::documents
