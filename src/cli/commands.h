#pragma once

// One function a command, one file a noun. main.cc fills the arguments, as they were typed; the
// commands understand them. Each gives the exit code, or an error that main.cc shows.

#include <optional>
#include <string>
#include <vector>

#include "baton/locks.h"
#include "cli/event_arguments.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace baton::cli {

namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int error = 1;
inline constexpr int usage = 2;
inline constexpr int busy = 75;    // EX_TEMPFAIL: somebody else holds it; try again later
inline constexpr int lost = 76;    // the lock was lost while the command ran
inline constexpr int fenced = 77;  // that token would be refused
inline constexpr int cannot_execute = 126;
inline constexpr int not_found = 127;
inline constexpr int by_signal = 128;  // plus the signal
}  // namespace exit_code

struct Context {
  Settings given;  // on the command line
  Output& out;
};

// How a lock is asked for.
struct LockArguments {
  std::string mode;
  std::string predicate;
  std::string ttl = "30s";
  std::string wait = "0s";
  std::string at_least_for = "0s";
  std::vector<std::string> metadata;
};

struct RunArguments : LockArguments {
  std::string name;
  std::string grace = "10s";
  std::string metrics;
  bool quiet = false;
  int busy_exit_code = exit_code::busy;
  std::vector<std::string> command;
};

struct HoldArguments : LockArguments {
  std::vector<std::string> names;
  std::string note;
  std::string ordinal;
  std::string if_ordinal_below;
  bool progress = false;
  std::string metrics;
};

struct ElectArguments {
  std::string name;
  std::string node;
  std::string ttl = "10s";
  std::string grace = "10s";
  bool restart = false;
  std::optional<int> priority;
  bool preempt = false;
  bool never_lead = false;
  std::string healthy_if;  // a command
  std::string metrics;
  std::vector<std::string> command;
};

struct LeaderArguments {
  std::string name;
  std::string node;  // the next leader, for transfer
  std::string reason;
  std::string timeout = "1m";
};

struct LockFindArguments {
  std::string name;
  std::string subject;
  std::string predicate;
  std::string mode;
  std::vector<std::string> resources;
  std::string holder;  // --owner of this command: whose locks to find
  std::size_t limit = 1000;
  bool watch = false;
};

struct LockBreakArguments {
  std::string name;
  std::string predicate;
  std::string reason;
  std::string timeout;
  bool now = false;
};

struct LockShowArguments {
  std::string name;
  std::string predicate;
};

struct LockForgetArguments {
  std::string name;
  std::string predicate;
  bool key = false;
  bool damaged = false;
};

struct LockStatsArguments {
  std::size_t top = 10;
};

struct FenceArguments {
  std::string name;
  std::string predicate;
  std::string token;
  std::string mode;
  std::string database;
  bool key = false;
};

struct StoreMigrateArguments {
  bool dry_run = false;
  bool sql = false;
};

struct StoreDoctorArguments {
  std::string ttl = "30s";
};

struct JobArguments {
  std::string name;
  std::string wait;
  int limit = 10;
};

struct NodeArguments {
  bool live = false;
};

struct PartitionArguments {
  std::string set;
};

struct ProcessorArguments {
  std::string database;
  std::string name;
  bool yes = false;
  bool no_wait = false;
};

struct BrokerArguments {
  std::string broker;
  std::string file;
};

struct RelayArguments {
  std::string outbox;
  std::string broker;
  std::string name;
  std::string mode = "partitioned";
  std::string topology;
  std::string ttl = "10s";
  int max_attempts = 10;
  std::string first_delay = "10s";
  std::string on_failed = "hold";
  std::string keep = "3d";
  std::string log_format = "json";
  std::string log_level = "info";
  std::string metrics;
};

struct CronArguments {
  std::string file;
  bool check = false;
  std::string import;  // a crontab
  std::string output;
  std::string user;
  std::string node;
  std::string role = "cron";
  int workers = 16;
  std::string log_format = "json";
  std::string log_level = "info";
  std::string metrics;
};

struct PolicyArguments {
  std::string file;
  std::string timeout = "1m";
  bool replace = false;
};

Result<int> run(Context& context, const RunArguments& arguments);
Result<int> hold(Context& context, const HoldArguments& arguments);
Result<int> elect(Context& context, const ElectArguments& arguments);
Result<int> cron(Context& context, const CronArguments& arguments);
Result<int> cron_import(Context& context, const CronArguments& arguments);
Result<int> leader_show(Context& context, const LeaderArguments& arguments);
Result<int> leader_is_me(Context& context, const LeaderArguments& arguments);
Result<int> leader_resign(Context& context, const LeaderArguments& arguments);
Result<int> leader_transfer(Context& context, const LeaderArguments& arguments);
Result<int> lock_find(Context& context, const LockFindArguments& arguments);
Result<int> lock_show(Context& context, const LockShowArguments& arguments);
Result<int> lock_break(Context& context, const LockBreakArguments& arguments);
Result<int> lock_forget(Context& context, const LockForgetArguments& arguments);
Result<int> lock_stats(Context& context, const LockStatsArguments& arguments);
Result<int> fence_check(Context& context, const FenceArguments& arguments);
Result<int> fence_rebase(Context& context, const FenceArguments& arguments);
Result<int> fence_install(Context& context, const FenceArguments& arguments);
Result<int> store_migrate(Context& context, const StoreMigrateArguments& arguments);
Result<int> store_status(Context& context);
Result<int> store_doctor(Context& context, const StoreDoctorArguments& arguments);
Result<int> policy_check(Context& context, const PolicyArguments& arguments);
Result<int> policy_apply(Context& context, const PolicyArguments& arguments);
Result<int> policy_show(Context& context);
Result<int> job_list(Context& context);
Result<int> job_show(Context& context, const JobArguments& arguments);
Result<int> job_history(Context& context, const JobArguments& arguments);
Result<int> job_pause(Context& context, const JobArguments& arguments);
Result<int> job_resume(Context& context, const JobArguments& arguments);
Result<int> job_run(Context& context, const JobArguments& arguments);
Result<int> job_skip(Context& context, const JobArguments& arguments);
Result<int> job_forget(Context& context, const JobArguments& arguments);
Result<int> node_list(Context& context, const NodeArguments& arguments);
Result<int> partition_list(Context& context, const PartitionArguments& arguments);
Result<int> outbox_install(Context& context, const EventArguments& arguments);
Result<int> outbox_status(Context& context, const EventArguments& arguments);
Result<int> outbox_list(Context& context, const EventArguments& arguments);
Result<int> outbox_show(Context& context, const EventArguments& arguments);
Result<int> outbox_retry(Context& context, const EventArguments& arguments);
Result<int> outbox_discard(Context& context, const EventArguments& arguments);
Result<int> outbox_clean(Context& context, const EventArguments& arguments);
Result<int> inbox_install(Context& context, const EventArguments& arguments);
Result<int> inbox_status(Context& context, const EventArguments& arguments);
Result<int> inbox_list(Context& context, const EventArguments& arguments);
Result<int> inbox_show(Context& context, const EventArguments& arguments);
Result<int> dlq_list(Context& context, const EventArguments& arguments);
Result<int> dlq_show(Context& context, const EventArguments& arguments);
Result<int> dlq_redrive(Context& context, const EventArguments& arguments);
Result<int> dlq_discard(Context& context, const EventArguments& arguments);
Result<int> dlq_export(Context& context, const EventArguments& arguments);
Result<int> processor_install(Context& context, const ProcessorArguments& arguments);
Result<int> processor_list(Context& context, const ProcessorArguments& arguments);
Result<int> processor_show(Context& context, const ProcessorArguments& arguments);
Result<int> processor_pause(Context& context, const ProcessorArguments& arguments);
Result<int> processor_resume(Context& context, const ProcessorArguments& arguments);
Result<int> processor_reset(Context& context, const ProcessorArguments& arguments);
Result<int> processor_rebuild(Context& context, const ProcessorArguments& arguments);
Result<int> topology_plan(Context& context, const BrokerArguments& arguments);
Result<int> topology_apply(Context& context, const BrokerArguments& arguments);
Result<int> topology_check(Context& context, const BrokerArguments& arguments);
Result<int> queue_list(Context& context, const BrokerArguments& arguments);
Result<int> broker_doctor(Context& context, const BrokerArguments& arguments);
Result<int> relay(Context& context, const RelayArguments& arguments);

// What --broker gives, or else $BATON_BROKER.
[[nodiscard]] Result<std::string> broker_url(const std::string& given);
Result<int> version(Context& context);
// Of a shell; or prints the names that it offers: "locks", "jobs" or "elections".
Result<int> completion(Context& context, const std::string& shell);
// Sorted, and none that a shell would not take as it is.
Result<std::vector<std::string>> known_names(Context& context, const std::string& kind);

}  // namespace baton::cli
