#include "store/common/findings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "baton/name.h"

namespace baton::store {
namespace {

using std::chrono::microseconds;

std::string span(std::chrono::nanoseconds time) {
  const auto ms = std::chrono::ceil<Millis>(time).count();
  return ms < 10'000 ? std::to_string(ms) + " ms" : std::to_string(ms / 1000) + " s";
}

}  // namespace

void Findings::add(std::string code, Severity severity, std::string what, std::string consequence,
                   std::string remedy) {
  all_.push_back(
      {std::move(code), severity, std::move(what), std::move(consequence), std::move(remedy)});
}

void Findings::add(std::optional<Finding> finding) {
  if (finding) all_.push_back(std::move(*finding));
}

std::vector<Finding> Findings::worst_first() {
  store::worst_first(all_);
  return std::exchange(all_, {});
}

void worst_first(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return static_cast<int>(a.severity) > static_cast<int>(b.severity);
  });
}

std::optional<Finding> schema_finding(int version, int expected, std::string migrate) {
  if (version == expected) return std::nullopt;
  Finding finding{.code = "schema", .severity = Severity::danger};
  finding.consequence = "nobody can lock anything here";
  finding.remedy = std::move(migrate);
  if (version == 0) {
    finding.what = "the store has no schema yet";
  } else if (version < expected) {
    finding.what = "the schema has version " + std::to_string(version) + ", this baton wants " +
                   std::to_string(expected);
  } else {
    finding.what = "the schema has version " + std::to_string(version) + ", this baton knows " +
                   std::to_string(expected);
    finding.remedy = "use a newer baton";
  }
  return finding;
}

std::optional<Finding> slow_finding(std::chrono::nanoseconds slowest, Millis ttl,
                                    const std::string& where) {
  if (slowest <= ttl / 10) return std::nullopt;
  const bool fatal = slowest > ttl / 3;
  return Finding{
      .code = "slow",
      .severity = fatal ? Severity::danger : Severity::warning,
      .what = "a durable write to " + where + " took " + span(slowest) +
              ", which is much for a TTL of " + span(ttl),
      .consequence =
          fatal ? "leases are lost although their holders are well, whenever a renewal takes "
                  "longer than the rest of its TTL"
                : "one slow renewal more, as under load, and leases are lost although their "
                  "holders are well",
      .remedy = "a longer TTL (at least " + span(slowest * 20) + "), or a faster way to the store"};
}

std::optional<Finding> clock_finding(microseconds ahead, microseconds blur) {
  const microseconds apart(std::abs(ahead.count()));
  if (apart <= std::chrono::seconds(2) + blur) return std::nullopt;
  const std::string by = span(apart);
  return Finding{
      .code = "clock",
      .severity = Severity::warning,
      .what = "the store's clock is " + by + (ahead.count() > 0 ? " ahead of" : " behind") +
              " this machine's, so one of them is wrong",
      .consequence =
          "Baton never compares the two, but if the store's is put right by a jump forwards, "
          "leases end that much too early while their holders still trust them; backwards, that "
          "much too late",
      .remedy =
          "run chrony or another NTP client on both, so that clocks are slewed and never step"};
}

microseconds wall_clock() {
  return std::chrono::duration_cast<microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::optional<std::chrono::nanoseconds> slowest_of(int times, const std::function<bool()>& write) {
  std::chrono::nanoseconds slowest{0};
  for (int i = 0; i < times; ++i) {
    const auto before = BootClock::now();
    if (!write()) return std::nullopt;
    slowest = std::max<std::chrono::nanoseconds>(slowest, BootClock::now() - before);
  }
  return slowest;
}

std::optional<Finding> damaged_finding(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  constexpr std::size_t kShown = 5;
  std::string listed;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    listed += (listed.empty() ? "'" : ", '") + names[i] + "'";
  }
  if (names.size() > kShown) listed += " and others";
  return Finding{.code = "damaged-value",
                 .severity = Severity::danger,
                 .what = "what the store keeps cannot be read for " + listed,
                 .consequence = "nobody can lock, renew or release these names",
                 .remedy =
                     "find out who writes to the store besides Baton; when nobody holds the "
                     "name any more, baton lock forget NAME --damaged"};
}

std::vector<std::string> damaged_names(const Find& find) {
  std::vector<std::string> names;
  for (const std::string& region : {std::string(), std::string(kReservedRegion)}) {
    Query query{.region = region, .max_waiters = 0};
    do {
      const auto page = find(query);
      if (!page) return names;
      for (const LockInfo& info : page->items) {
        if (!info.damage.empty()) names.push_back(info.key);
      }
      query.after = page->next;
    } while (!query.after.empty());
  }
  return names;
}

Error nothing_stored(const std::string& key) {
  return {.code = Code::bad_request, .message = "the store keeps nothing for '" + key + "'"};
}

Error not_damaged(const std::string& key) {
  return {.code = Code::bad_request,
          .message = "what the store keeps for '" + key +
                     "' is not damaged; to take a lock from its holders, use baton lock break"};
}

Error changed_meanwhile(const std::string& key) {
  return {.code = Code::unavailable,
          .message = "somebody changed '" + key + "' meanwhile; nothing was removed",
          .retryable = true};
}

}  // namespace baton::store
