// The document platform under faults: three replicas of each service that are killed and stopped
// while they work, a broker that restarts and a database that crashes. Afterwards every document is
// in its right final state, nothing is lost and nothing happened twice.

#include <gtest/gtest.h>

#include "fault_run.h"
#include "support/postgres_server.h"
#include "support/seed.h"

namespace baton::test {
namespace {

constexpr int kDocuments = 300;
constexpr int kPhases = 6;
constexpr int kKillsAPhase = 4;

// Submits a part of the documents, and kills replicas while it is handled.
void phase(FaultRun& run, int number) {
  const int before = kDocuments / kPhases * number;
  run.submit(kDocuments / kPhases);
  for (int i = 1; i <= kKillsAPhase; ++i) {
    run.wait_for(before + i * (kDocuments / kPhases) / (kKillsAPhase + 1));
    (void)run.kill_one();
  }
}

TEST(DocumentsUnderFaults, every_document_is_final_and_nothing_is_lost_or_doubled_on_files) {
  if (on_servers()) GTEST_SKIP() << "this program is for servers";
  Platform platform(FaultRun::options());
  FaultRun run(platform, seed_or(1), kDocuments, 1);
  for (int i = 0; i < kPhases; ++i) {
    phase(run, i);
    // Other processes cannot write to a file whose lock the stopped one has. All must be well when
    // it goes on or is gone.
    if (i == kPhases / 2) (void)run.stop_one_past_its_ttl();
  }
  run.wait_for(kDocuments);
  EXPECT_EQ(run.problems("150s"), "") << platform.up().out();
  EXPECT_GT(run.kills(), kPhases);
  EXPECT_TRUE(platform.stop());
}

TEST(DocumentsUnderFaults, every_document_is_final_and_nothing_is_lost_or_doubled_on_servers) {
  if (!on_servers()) GTEST_SKIP() << "this program is for files";
  PostgresServer server(PostgresOptions{.settings = {{"max_connections", "400"}}});
  Platform platform(FaultRun::options(server.url(), rabbit().url()));
  FaultRun run(platform, seed_or(1), kDocuments, 1);
  for (int i = 0; i < kPhases; ++i) {
    phase(run, i);
    if (i == 1) {
      rabbit().stop();
      rabbit().start();
    }
    if (i == 2) (void)run.stop_one_past_its_ttl();
    if (i == 4) server.restart(PostgresServer::StopMode::immediate);
  }
  run.wait_for(kDocuments);
  EXPECT_EQ(run.problems("150s"), "") << platform.up().out();
  EXPECT_GT(run.kills(), kPhases);
  EXPECT_TRUE(platform.stop());
}

}  // namespace
}  // namespace baton::test
