#include "broker/rabbitmq/examine.h"

#include <charconv>

#include "broker/common/queue_findings.h"
#include "store/common/url.h"

namespace baton::broker::rabbitmq {
namespace {

using Severity = BrokerFinding::Severity;

// At-least-once dead lettering came with 3.10; before, it is silently something else.
bool is_too_old(const std::string& version) {
  int major = 0;
  int minor = 0;
  const char* const end = version.data() + version.size();
  const auto read = std::from_chars(version.data(), end, major);
  if (read.ec != std::errc{} || read.ptr == end || *read.ptr != '.') return false;
  if (std::from_chars(read.ptr + 1, end, minor).ec != std::errc{}) return false;
  return major < 3 || (major == 3 && minor < 10);
}

void examine_line(const Settings& settings, std::vector<BrokerFinding>& findings) {
  if (!settings.uses_tls && !store::is_local(settings.host)) {
    findings.push_back({Severity::warning, "clear-text-credentials", settings.location,
                        "the password and all messages go over the network as they are: use "
                        "rabbitmqs://"});
  }
  if (settings.uses_tls && !settings.tls.verify) {
    findings.push_back({Severity::problem, "tls-unverified", settings.location,
                        "nobody checks who answers (verify=no), who then gets the password: give "
                        "the server's CA with ?ca= and leave out verify=no"});
  }
}

void examine_server(const Settings& settings, const Facts& facts,
                    std::vector<BrokerFinding>& findings) {
  if (facts.product == "RabbitMQ" && is_too_old(facts.version)) {
    findings.push_back({Severity::problem, "old-server", facts.version,
                        "RabbitMQ " + facts.version +
                            " can lose messages that it gives up on: 3.10 or newer is needed"});
  }
  if (!facts.alarm) {
    findings.push_back({Severity::note, "alarm-not-visible", settings.location,
                        "this user may not publish to the default exchange, so it cannot see "
                        "whether the server has an alarm: let it write amq.default"});
  } else if (!facts.alarm->empty()) {
    const bool memory = facts.alarm->find("memory") != std::string::npos;
    findings.push_back({Severity::problem, memory ? "memory-alarm" : "disk-alarm",
                        settings.location,
                        "the server takes no messages now (" + *facts.alarm +
                            "): free memory or disk, or look for queues that nobody consumes"});
  }
}

}  // namespace

std::vector<BrokerFinding> examine(const Settings& settings, const Topology& topology,
                                   const Facts& facts) {
  std::vector<BrokerFinding> findings;
  examine_line(settings, findings);
  examine_server(settings, facts, findings);
  const auto about_queues = queue_findings(topology, facts.queues);
  findings.insert(findings.end(), about_queues.begin(), about_queues.end());
  return findings;
}

}  // namespace baton::broker::rabbitmq
