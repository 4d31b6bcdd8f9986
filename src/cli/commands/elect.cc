// baton elect: a command that runs while we lead.

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/core.h>

#include "baton/elector.h"
#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/health_command.h"
#include "cli/json_writer.h"
#include "cli/open_client.h"
#include "cli/signals.h"
#include "cli/store_wait.h"
#include "cli/supervisor.h"

namespace baton::cli {
namespace {

// Between the end of a command and its restart, so that one that fails at once does not spin.
constexpr Millis kBeforeRestart{1'000};

struct Plan {
  ElectorOptions options;
  Millis grace{0};
};

Result<Plan> make_plan(const ElectArguments& arguments, const Settings& settings) {
  Plan plan;
  auto ttl = parse_duration_argument("--ttl", arguments.ttl, Millis(1), kMaxTtl);
  if (!ttl) return ttl.error();
  plan.options.ttl = *ttl;
  auto grace = parse_duration_argument("--grace", arguments.grace);
  if (!grace) return grace.error();
  plan.grace = *grace;
  if (!settings.region.empty()) plan.options.region = settings.region;
  if (arguments.preempt && !arguments.priority) {
    return bad_request("--preempt needs --priority N: who has the higher one takes over");
  }
  plan.options.priority = arguments.priority;
  plan.options.preempt = arguments.preempt;
  plan.options.never_lead = arguments.never_lead;
  if (auto lock = election_lock(arguments.name, plan.options.region); !lock) return lock.error();
  return plan;
}

// Whether we lead, for the server of the metrics, which outlives the elector.
class LeaderProbe {
 public:
  void ask(Elector* elector) {
    const std::lock_guard lock(mutex_);
    elector_ = elector;
  }
  bool leads() {
    const std::lock_guard lock(mutex_);
    return elector_ != nullptr && elector_->is_leader();
  }

 private:
  std::mutex mutex_;
  Elector* elector_ = nullptr;
};

// While we follow, a thread of its own listens for the signals that end us; while we lead, the
// supervisor passes them on. So the listener goes when the command starts and comes back after it.
class Listener {
 public:
  Listener(const Signals& signals, std::stop_source& end)
      : listening_(signals), on_signal_(listening_.token(), [&end] { end.request_stop(); }) {}

  void ask_politely() { listening_.ask_politely(); }
  int finish() { return listening_.finish(); }

 private:
  StopOnSignal listening_;
  std::stop_callback<std::function<void()>> on_signal_;
};

class Candidate {
 public:
  Candidate(Context& context, const ElectArguments& arguments, Child& child, const Signals& signals,
            Millis grace)
      : context_(context),
        arguments_(arguments),
        child_(child),
        signals_(signals),
        grace_(grace),
        listener_(std::make_unique<Listener>(signals_, end_)) {}

  [[nodiscard]] std::stop_token end() const { return end_.get_token(); }
  void store_is_open() { listener_->ask_politely(); }

  void lead(Leadership& term, const std::stop_token& stop) {
    if (listener_->finish() != 0) return;
    tell("elected", term.term(),
         fmt::format("leading {} in term {}", arguments_.name, term.term()));
    const bool again = keep_running(term, stop);
    if (!again) {
      end_.request_stop();
      return;
    }
    tell("lost", term.term(),
         fmt::format("no longer leading {} ({}); {} was ended, and starts again with the next term",
                     arguments_.name, term.why_ending(), arguments_.command.front()));
    listener_ = std::make_unique<Listener>(signals_, end_);
    listener_->ask_politely();
  }

  void follow(const Leader& leader, const std::string& self) const {
    if (leader.node == self) return;
    tell("following", leader.term,
         fmt::format("{} is led by {} in term {}{}", arguments_.name, leader.node, leader.term,
                     arguments_.never_lead ? "" : "; waiting"),
         leader.node);
  }

  void warn(const std::string& message) const {
    JsonWriter json;
    json.begin_object().field("event", "warning").field("election", arguments_.name);
    json.field("message", printable(message)).end_object();
    context_.out.event("warning: " + message, json.text());
  }

  // That of the command if one has run to its end, else of the signal that ended the wait.
  int exit_code_at_end() {
    if (exit_code_) return *exit_code_;
    const int signal = listener_->finish();
    return signal != 0 ? exit_code::by_signal + signal : exit_code::ok;
  }

 private:
  // True if it ended because we do not lead any more.
  bool keep_running(Leadership& term, const std::stop_token& stop) {
    while (true) {
      auto environment = environment_of(term.lease());
      environment.push_back("BATON_TERM=" + std::to_string(term.term()));
      Supervisor supervisor(child_, signals_, term.lease(), stop, grace_,
                            [this](const std::string& message) { warn(message); });
      int exec_error = 0;
      if (auto started = supervisor.start(environment, exec_error); !started) {
        if (started.error().code == Code::lost) break;
        exit_code_ = not_started(started.error(), exec_error);
        return false;
      }
      const int code = supervisor.wait();
      exit_code_ = code;
      if (supervisor.left_behind()) {
        // Another one beside it would be one too many.
        context_.out.error(
            to_string(Code::lost),
            fmt::format("no longer leading {} ({}), and {} could not be ended, or "
                        "not all that it started",
                        arguments_.name, term.why_ending(), arguments_.command.front()));
        return false;
      }
      if (supervisor.asked_to_end()) return false;
      if (supervisor.lost()) break;
      if (!arguments_.restart) return false;
      tell("restarting", term.term(),
           fmt::format("{} ended with {}; starting it again", arguments_.command.front(), code));
      if (const int signal = pause(stop); signal != 0) return false;
      if (stop.stop_requested()) break;
    }
    exit_code_.reset();
    return true;
  }

  int not_started(const Error& error, int exec_error) {
    if (exec_error == 0) {
      context_.out.error(error);
      return exit_code::error;
    }
    return cannot_start(context_, arguments_.command.front(),
                        exec_error == ENOENT ? exit_code::not_found : exit_code::cannot_execute);
  }

  // The signal that ended it, if one that asks us to end did.
  int pause(const std::stop_token& stop) const {
    const StopEvent stopped(stop);
    const Instant until = BootClock::now() + kBeforeRestart;
    while (!stop.stop_requested() && BootClock::now() < until) {
      std::array<pollfd, 2> files{pollfd{signals_.file(), POLLIN, 0},
                                  pollfd{stopped.file(), POLLIN, 0}};
      const auto left = std::chrono::ceil<Millis>(until - BootClock::now()).count();
      poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
      signalfd_siginfo signal{};
      while (signals_.next(signal)) {
        if (ends(signal)) return static_cast<int>(signal.ssi_signo);
      }
    }
    return 0;
  }

  void tell(std::string_view event, Token term, const std::string& text,
            const std::string& node = {}) const {
    JsonWriter json;
    json.begin_object().field("event", event).field("election", arguments_.name);
    json.field("term", term);
    if (!node.empty()) json.field("leader", node);
    json.end_object();
    context_.out.event(text, json.text());
  }

  Context& context_;
  const ElectArguments& arguments_;
  Child& child_;
  const Signals& signals_;
  const Millis grace_;
  std::stop_source end_;
  std::unique_ptr<Listener> listener_;
  std::optional<int> exit_code_;
};

}  // namespace

Result<int> elect(Context& context, const ElectArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto plan = make_plan(arguments, *settings);
  if (!plan) return plan.error();
  if (arguments.command.empty()) {
    return bad_request("say what to run: baton elect " + arguments.name + " -- COMMAND…");
  }
  const Program program = find_program(arguments.command.front());
  if (program.exit_code != 0) {
    return cannot_start(context, arguments.command.front(), program.exit_code);
  }

  auto child = Child::prepare(
      {program.path, arguments.command, grace_if_killed(settings->store, plan->grace)});
  if (!child) return child.error();
  const Signals signals;
  Candidate candidate(context, arguments, **child, signals, plan->grace);
  if (!arguments.node.empty()) settings->owner = arguments.node;
  const auto probe = std::make_shared<LeaderProbe>();
  auto opened =
      open_client(*settings, arguments.metrics, context.out, StoreWait(context.out, std::nullopt),
                  std::nullopt, [probe] { return probe->leads(); });
  if (!opened) return opened.error();
  candidate.store_is_open();
  plan->options.on_new_leader = [&, self = opened->locks.owner()](const Leader& leader) {
    candidate.follow(leader, self);
  };
  plan->options.on_error = [&](const Error& error) { candidate.warn(error.message); };
  if (!arguments.healthy_if.empty()) {
    // A little less than the elector allows, so that it is told why.
    plan->options.healthy = [&, limit = plan->options.ttl / 4] {
      return run_health_command(arguments.healthy_if, limit, candidate.end());
    };
  }
  Elector elector(opened->locks, arguments.name, plan->options);
  probe->ask(&elector);
  const auto ended = elector.run(
      [&](Leadership& term, const std::stop_token& stop) { candidate.lead(term, stop); },
      candidate.end());
  probe->ask(nullptr);
  if (!ended) return ended.error();
  return candidate.exit_code_at_end();
}

}  // namespace baton::cli
