// baton topology, baton queue and baton broker: what is there in a broker, and what should be.

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "baton/broker.h"
#include "baton/locks.h"
#include "cli/commands.h"
#include "cli/file.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"
#include "cli/remedy.h"
#include "policy/yaml.h"

namespace baton::cli {

Result<std::string> broker_url(const std::string& given) {
  std::string url = given;
  if (url.empty()) {
    const char* const set = std::getenv("BATON_BROKER");
    if (set == nullptr || *set == '\0') {
      return Error{.code = Code::bad_url,
                   .message = set == nullptr
                                  ? "no broker: say --broker URL or set BATON_BROKER"
                                  : "BATON_BROKER is set but empty; name a broker in it"};
    }
    url = set;
  }
  if (auto ok = check_password(url); !ok) return ok.error();
  return url;
}

namespace {

using Severity = BrokerFinding::Severity;

constexpr Millis kLookLimit{10'000};
constexpr Millis kDeclareLimit{30'000};

// Asks the broker, and tells a terminal what is waited for.
template <typename Ask>
auto within(Millis limit, const Context& context, const Broker& broker, Ask ask) {
  const OpenProgress progress(context.out, broker.describe(), limit);
  return ask(BootClock::now() + limit);
}

Result<std::shared_ptr<Broker>> open_broker(const BrokerArguments& arguments) {
  auto url = broker_url(arguments.broker);
  if (!url) return url.error();
  return Broker::open(*url);
}

Result<Topology> read_topology(const std::string& file) {
  auto text = read_file(file, policy::kMaxYamlBytes);
  if (!text) return text.error();
  auto parsed = parse_topology(*text);
  if (parsed) return parsed;
  Error error = parsed.error();
  error.message = (file == "-" ? "standard input" : file) + ": " + error.message;
  return error;
}

struct Asked {
  std::shared_ptr<Broker> broker;
  Topology topology;
};

Result<std::vector<BrokerFinding>> check(const Context& context, const Asked& asked) {
  return within(kLookLimit, context, *asked.broker,
                [&](Deadline by) { return asked.broker->check(asked.topology, by); });
}

Result<Asked> resolve(const BrokerArguments& arguments) {
  Asked asked;
  if (!arguments.file.empty()) {
    auto topology = read_topology(arguments.file);
    if (!topology) return topology.error();
    asked.topology = std::move(*topology);
  }
  auto broker = open_broker(arguments);
  if (!broker) return broker.error();
  asked.broker = std::move(*broker);
  return asked;
}

bool is_missing(const BrokerFinding& finding) { return finding.code.starts_with("missing-"); }

// About what the file says, and not about the broker as such.
bool is_of_topology(const BrokerFinding& finding) {
  constexpr std::string_view kCodes[] = {"other-arguments",     "classic-queue", "message-ttl",
                                         "drops-messages",      "extra-binding", "not-visible",
                                         "bindings-not-visible"};
  return is_missing(finding) ||
         std::find(std::begin(kCodes), std::end(kCodes), finding.code) != std::end(kCodes);
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::problem: return "problem";
    case Severity::warning: return "warning";
    case Severity::note: break;
  }
  return "note";
}

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::problem: return Style::red;
    case Severity::warning: return Style::yellow;
    case Severity::note: break;
  }
  return Style::bold;
}

void write_findings(JsonWriter& json, const std::vector<BrokerFinding>& findings) {
  json.begin_array();
  for (const BrokerFinding& finding : findings) {
    json.begin_object().field("code", finding.code).field("severity", name_of(finding.severity));
    json.field("subject", finding.subject).field("message", finding.message).end_object();
  }
  json.end_array();
}

void show_findings(const Context& context, const std::vector<BrokerFinding>& findings) {
  for (const BrokerFinding& finding : findings) {
    const std::string title = fmt::format("{}: {}", name_of(finding.severity), finding.code);
    context.out.line(context.out.styled(title, style_of(finding.severity)));
    context.out.line("  " + printable(finding.message));
  }
}

Result<int> report(const Context& context, const Broker& broker,
                   std::vector<BrokerFinding> findings, std::string_view all_is_well) {
  std::stable_sort(findings.begin(), findings.end(), [](const auto& one, const auto& other) {
    return one.severity > other.severity;
  });
  const bool well = std::all_of(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.severity == Severity::note;
  });
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("broker", broker.describe()).key("findings");
    write_findings(json, findings);
    context.out.line(json.end_object().text());
  } else {
    show_findings(context, findings);
    if (well) context.out.line(fmt::format("{}: {}", printable(broker.describe()), all_is_well));
  }
  return well ? exit_code::ok : exit_code::error;
}

std::string contents(const Topology& topology) {
  return fmt::format("{}, {} and {}", counted(topology.exchanges.size(), "exchange"),
                     counted(topology.queues.size(), "queue"),
                     counted(topology.bindings.size(), "binding"));
}

}  // namespace

Result<int> topology_plan(Context& context, const BrokerArguments& arguments) {
  auto asked = resolve(arguments);
  if (!asked) return asked.error();
  const auto findings = check(context, *asked);
  if (!findings) return findings.error();
  std::vector<BrokerFinding> refused;
  std::vector<BrokerFinding> notes;
  std::vector<std::pair<std::string, std::string>> made;  // kind and name
  for (const BrokerFinding& finding : *findings) {
    if (is_missing(finding)) {
      made.emplace_back(finding.code.substr(finding.code.find('-') + 1), finding.subject);
    } else if (is_of_topology(finding)) {
      (finding.severity == Severity::problem ? refused : notes).push_back(finding);
    }
  }
  const int code = refused.empty() ? exit_code::ok : exit_code::error;
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("broker", asked->broker->describe()).key("make").begin_array();
    for (const auto& [kind, name] : made) {
      json.begin_object().field("kind", kind).field("name", name).end_object();
    }
    json.end_array().key("refused");
    write_findings(json, refused);
    json.key("notes");
    write_findings(json, notes);
    context.out.line(json.end_object().text());
    return code;
  }
  for (const auto& [kind, name] : made) {
    context.out.line(fmt::format("make {} {}", kind, printable(name)));
  }
  show_findings(context, refused);
  show_findings(context, notes);
  if (!refused.empty()) {
    context.out.line("apply would make nothing: first see to what is refused");
  } else if (made.empty()) {
    context.out.line("nothing to make");
  }
  return code;
}

Result<int> topology_apply(Context& context, const BrokerArguments& arguments) {
  auto asked = resolve(arguments);
  if (!asked) return asked.error();
  const Topology& topology = asked->topology;
  const auto made = within(kDeclareLimit, context, *asked->broker,
                           [&](Deadline by) { return asked->broker->declare(topology, by); });
  if (!made) return made.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("broker", asked->broker->describe());
    json.field("exchanges", topology.exchanges.size()).field("queues", topology.queues.size());
    json.field("bindings", topology.bindings.size());
    context.out.line(json.end_object().text());
  } else {
    context.out.line(
        fmt::format("{} has {}", printable(asked->broker->describe()), contents(topology)));
  }
  return exit_code::ok;
}

Result<int> topology_check(Context& context, const BrokerArguments& arguments) {
  auto asked = resolve(arguments);
  if (!asked) return asked.error();
  auto findings = check(context, *asked);
  if (!findings) return findings.error();
  std::erase_if(*findings, [](const auto& finding) { return !is_of_topology(finding); });
  return report(context, *asked->broker, std::move(*findings),
                "all is as the file says: " + contents(asked->topology));
}

Result<int> queue_list(Context& context, const BrokerArguments& arguments) {
  auto asked = resolve(arguments);
  if (!asked) return asked.error();
  const auto queues = within(kLookLimit, context, *asked->broker, [&](Deadline by) {
    return asked->broker->queues(asked->topology, by);
  });
  if (!queues) return queues.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("broker", asked->broker->describe()).key("queues").begin_array();
    for (const QueueInfo& queue : *queues) {
      json.begin_object().field("name", queue.name).field("exists", queue.exists);
      json.field("ready", queue.ready).field("consumers", queue.consumers).end_object();
    }
    context.out.line(json.end_array().end_object().text());
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const QueueInfo& queue : *queues) {
    rows.push_back({queue.name, queue.exists ? std::to_string(queue.ready) : "missing",
                    queue.exists ? std::to_string(queue.consumers) : "-"});
  }
  context.out.table({"QUEUE", "READY", "CONSUMERS"}, rows);
  const auto missing = static_cast<std::size_t>(
      std::count_if(queues->begin(), queues->end(), [](const auto& one) { return !one.exists; }));
  if (missing > 0) {
    context.out.warning(printable(fmt::format(
        "{} of the {} of {} are not at {}: 'baton topology apply {}' makes them there; or name the "
        "right broker",
        missing == queues->size() ? "all" : std::to_string(missing),
        counted(queues->size(), "queue"), arguments.file, asked->broker->describe(),
        arguments.file)));
  }
  return exit_code::ok;
}

Result<int> broker_doctor(Context& context, const BrokerArguments& arguments) {
  auto asked = resolve(arguments);
  if (!asked) return asked.error();
  auto findings = check(context, *asked);
  if (!findings) return findings.error();
  return report(context, *asked->broker, std::move(*findings), "all is well");
}

}  // namespace baton::cli
