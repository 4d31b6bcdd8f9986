// That `documents verify` can fail: platforms whose services are linked with flawed sources
// (flaws/), each in the smallest run that brings its flaw out. The same program without the flaw
// dies at the same place and is well; so verify finds the flaw and not the death.

#include <gtest/gtest.h>

#include "platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

struct Flaw {
  const char* name;
  const char* dies_at;  // in the control too
  const char* simulate;
  const char* found;  // what verify must say
};

constexpr Flaw kFlaws[] = {
    {"no_inbox", "enrichment:after_the_commit", "", "enrichment has given up document"},
    {"inbox_after_the_effect", "enrichment:after_the_commit", "",
     "enrichment has given up document"},
    {"ack_before_commit", "validation:before_the_commit", "", "validation has not handled"},
    {"outbox_apart", "ingestion:before_the_event", "", "has no DocumentUploaded"},
    {"gives_up_in_two_steps", "enrichment:behind_the_hook", "poison", "has failed twice"},
    {"sender_without_keys", "notification:before_the_commit", "", "was sent twice"},
};

void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.name; }

// One document, during which a process dies. What verify says of it.
json run(const Flaw& flaw, bool flawed) {
  const TempDir dir("flaw");
  const std::string death = (dir / "death").string();
  std::ofstream(death).flush();
  Platform platform({.program = BATON_DOCUMENTS_FLAWED,
                     .env = {{"BATON_TEST_FLAW", flawed ? flaw.name : ""},
                             {"BATON_TEST_DIE_AT", flaw.dies_at},
                             {"BATON_TEST_DIE", death},
                             {"DOCUMENTS_HANDLER_TIMEOUT", "1s"}}});
  (void)platform.submit(a_document("A letter", flaw.simulate));
  const bool died = poll_until([&] { return !std::filesystem::exists(death); });
  if (!died) throw std::runtime_error("nobody died: " + platform.up().out());
  if (!flawed) return platform.verify();
  // Of what is lost nobody can wait for the end: the control was well in this time.
  json verdict;
  poll_until(
      [&] {
        verdict = platform.verify("0s");
        return verdict.dump().find(flaw.found) != std::string::npos;
      },
      std::chrono::seconds(20), std::chrono::milliseconds(100));
  return platform.verify("2s");
}

class FlawsOnFiles : public testing::TestWithParam<Flaw> {};

TEST_P(FlawsOnFiles, verify_finds_it_and_nothing_where_it_is_missing) {
  const json sound = run(GetParam(), false);
  EXPECT_TRUE(sound.at("ok")) << sound.dump(2);
  const json flawed = run(GetParam(), true);
  EXPECT_FALSE(flawed.at("ok"));
  EXPECT_NE(flawed.dump().find(GetParam().found), std::string::npos) << flawed.dump(2);
}

INSTANTIATE_TEST_SUITE_P(Each, FlawsOnFiles, testing::ValuesIn(kFlaws),
                         [](const auto& one) { return std::string(one.param.name); });

// An event is recorded in a transaction that commits after later ones have been sealed.
json run_with_a_late_commit(const char* flaw) {
  Platform platform({.replicas = "audit=2",
                     .postgres = shared_server(),
                     .program = BATON_DOCUMENTS_FLAWED,
                     .env = {{"BATON_TEST_FLAW", flaw}}});
  const auto audit = platform.database("audit");
  // The first DocumentRejected has its number and waits until this session lets it go on.
  audit
      ->script(
          "CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
          "  IF NEW.event_type = 'DocumentRejected' THEN PERFORM pg_advisory_xact_lock(1); END IF;"
          "  RETURN NULL;"
          "END $$;"
          "CREATE TRIGGER late AFTER INSERT ON audit_log FOR EACH ROW"
          "  EXECUTE FUNCTION wait_for_the_test();"
          "SELECT pg_advisory_lock(1)")
      .value();
  json rejected = a_document("Late");
  rejected["content"] = "this is malware";
  (void)platform.submit(rejected);
  const auto waits =
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      " AND database = (SELECT oid FROM pg_database WHERE datname ="
      " current_database())";
  if (!poll_until([&] { return !audit->query(waits).value().empty(); })) {
    throw std::runtime_error("nothing waits");
  }
  // What comes now is recorded by the other replica, with later numbers, and sealed.
  const auto number = [&](const char* sql) { return audit->query(sql).value().front().integer(0); };
  const auto late = number("SELECT last_value FROM audit_log_id_seq");
  if (!poll_until([&] {
        (void)platform.submit(a_document());
        return number("SELECT coalesce(max(audit_id), 0) FROM audit_seal") > late;
      })) {
    throw std::runtime_error("nothing is sealed");
  }
  audit->query("SELECT pg_advisory_unlock(1)").value();
  return platform.verify(std::string_view(flaw).empty() ? "60s" : "5s");
}

TEST(FlawsOnPostgres, verify_finds_a_sealer_that_skips_a_late_commit) {
  const json sound = run_with_a_late_commit("");
  EXPECT_TRUE(sound.at("ok")) << sound.dump(2);
  const json flawed = run_with_a_late_commit("sealer_by_number");
  EXPECT_FALSE(flawed.at("ok"));
  EXPECT_NE(flawed.dump().find("are not sealed"), std::string::npos) << flawed.dump(2);
}

}  // namespace
}  // namespace baton::test
