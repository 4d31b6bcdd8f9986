// Wrong relays and consumers, which the checker of the fault run must find. Each is a replica that
// is linked with one flawed source (mutants/), in the smallest run that brings it out; the sound
// replica must come out of the same run without a problem.

#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "event_system.h"
#include "support/event_topology.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLate = "Late";  // the type of an event that no queue wants yet

// Binds the queues to everything but such events, or to these too.
Topology topology(bool late_too) {
  Topology topology = event_topology();
  for (auto& binding : topology.bindings) binding.pattern = "counted";
  if (!late_too) return topology;
  for (const auto& binding : event_topology().bindings) topology.bindings.push_back(binding);
  return topology;
}

void wait_until_settled(EventSystem& system) {
  if (!poll_until([&] { return system.settled(); }, 60s, 20ms)) {
    throw std::runtime_error("it does not come to rest");
  }
}

// Publishes and handles some events. The first consumer dies at its first commit; another follows.
EventVerdict run_with_a_death(EventSystem& system, const std::string& when) {
  system.declare(event_topology());
  system.watch();
  for (int i = 0; i < 5; ++i) system.write_one("a1", "Counted");
  system.add_relay();
  Replica& first = system.add_consumer({"unlucky=0", "die=" + when});
  if (first.died_of() != SIGKILL) throw std::runtime_error("it was to die: " + first.err());
  system.add_consumer({"unlucky=0"});
  wait_until_settled(system);
  return system.judge();
}

EventVerdict killed_before_the_commit(EventSystem& system) {
  return run_with_a_death(system, "before_commit");
}

EventVerdict killed_after_the_commit(EventSystem& system) {
  return run_with_a_death(system, "after_commit");
}

// The first event of an aggregate is returned, the second could go. Then the first can, too.
EventVerdict returned_ahead_of_another(EventSystem& system) {
  system.declare(topology(false));
  system.watch();
  system.write_one("a1", kLate);
  system.write_one("a1", "Counted");
  system.add_relay({"declare=0", "first_delay=500"});
  system.add_consumer({"declare=0", "unlucky=0"});
  const auto undecided =
      "SELECT count(*) FROM outbox_events WHERE status = 'PENDING' AND next_retry_at IS NULL";
  if (!poll_until([&] { return system.shop().query(undecided).value().front().integer(0) == 0; })) {
    throw std::runtime_error("the events stay undecided");
  }
  system.declare(topology(true));
  wait_until_settled(system);
  return system.judge({.attempts = 10});
}

// The first owner of a lane knows that its event was returned for the last time, and stands still
// before it marks that. The second has published it, and has not marked that either, when the first
// goes on.
EventVerdict marked_by_a_paused_owner(EventSystem& system) {
  system.declare(topology(false));
  system.watch();
  system.write_one("a1", kLate);
  system.add_consumer({"declare=0", "unlucky=0"});
  Replica& first = system.add_relay({"declare=0", "ttl=1000", "attempts=1", "hold_at=failed"});
  if (!first.wait_for("held")) throw std::runtime_error("nothing was returned: " + first.err());
  system.pause_between_writes(first);
  system.declare(topology(true));
  Replica& second = system.add_relay({"declare=0", "ttl=1000", "hold_at=published"});
  if (!second.wait_for("held")) throw std::runtime_error("nobody took over: " + second.err());
  first.go_on();
  first.say("go");
  const auto failed = "SELECT count(*) FROM outbox_events WHERE status = 'FAILED'";
  if (!poll_until([&] {
        return first.said().find("left") != std::string::npos ||
               system.shop().query(failed).value().front().integer(0) > 0;
      })) {
    throw std::runtime_error("the first owner does nothing");
  }
  second.say("go");
  wait_until_settled(system);
  return system.judge();
}

struct Mutant {
  const char* name;
  EventVerdict (*run)(EventSystem&);
  const char* problem;  // the beginning of what the checker must say
};

constexpr Mutant kMutants[] = {
    {"no_inbox", killed_after_the_commit, "2 effects of a1"},
    {"inbox_after_the_effect", killed_after_the_commit, "2 effects of a1"},
    {"ack_before_commit", killed_before_the_commit, "no effect of a1"},
    {"several_of_one_aggregate_in_flight", returned_ahead_of_another,
     "a1 1 was first published after 2"},
    {"ack_without_watching_returns", returned_ahead_of_another, "no effect of a1 1"},
    {"a_paused_owner_marks", marked_by_a_paused_owner, "outbox: 1 events are FAILED"},
};

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

EventVerdict verdict_of(const std::string& program, EventVerdict (*run)(EventSystem&)) {
  const TempDir dir = TempDir::in_memory("events");
  EventSystem system(event_files(dir), 1, program);
  return run(system);
}

class EventMutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(EventMutants, is_found_where_the_sound_replica_has_no_problem) {
  const Mutant& mutant = GetParam();
  const EventVerdict sound = verdict_of(BATON_EVENT_REPLICA, mutant.run);
  EXPECT_EQ(sound.problems, std::vector<std::string>());
  EXPECT_GT(sound.effects, 0U);

  const EventVerdict flawed =
      verdict_of(std::string(BATON_EVENT_REPLICA) + "_" + mutant.name, mutant.run);
  std::string all;
  for (const auto& problem : flawed.problems) all += problem + "\n";
  EXPECT_TRUE(("\n" + all).find("\n" + std::string(mutant.problem)) != std::string::npos)
      << mutant.name << " survived: " << (all.empty() ? "no problem" : all);
  std::printf("%-36s %s", mutant.name, all.c_str());
}

INSTANTIATE_TEST_SUITE_P(Each, EventMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& mutant) { return std::string(mutant.param.name); });

TEST(EventMutants, all_that_are_built_are_run) {
  std::string names;
  for (const Mutant& mutant : kMutants)
    names += (names.empty() ? "" : ",") + std::string(mutant.name);
  const std::string built = BATON_EVENT_MUTANTS;
  for (const Mutant& mutant : kMutants) {
    EXPECT_NE(("," + built + ",").find("," + std::string(mutant.name) + ","), std::string::npos);
  }
  EXPECT_EQ(names.size(), built.size()) << built;
}

}  // namespace
}  // namespace baton::test
