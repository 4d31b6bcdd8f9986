#include "cli/lock_options.h"

#include <fmt/core.h>

#include "cli/arguments.h"
#include "policy/duration.h"

namespace baton::cli {
namespace {

Result<Metadata> parse_metadata(const std::vector<std::string>& pairs) {
  Metadata metadata;
  for (const auto& pair : pairs) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return bad_request("--metadata: '" + pair + "' is not key=value");
    }
    metadata[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return metadata;
}

}  // namespace

Result<AcquireOptions> lock_options(const LockArguments& arguments, std::optional<Mode> of_name) {
  AcquireOptions options;
  auto mode = parse_mode_argument(arguments.mode);
  if (!mode) return mode.error();
  options.mode = mode->value_or(of_name.value_or(Mode::X));
  auto ttl = parse_duration_argument("--ttl", arguments.ttl, Millis(1), kMaxTtl);
  if (!ttl) return ttl.error();
  options.ttl = *ttl;
  auto wait = parse_duration_argument("--wait", arguments.wait, Millis(0), kMaxWait);
  if (!wait) return wait.error();
  options.wait = *wait;
  auto least =
      parse_duration_argument("--at-least-for", arguments.at_least_for, Millis(0), kMaxTtl);
  if (!least) return least.error();
  options.at_least_for = *least;
  auto metadata = parse_metadata(arguments.metadata);
  if (!metadata) return metadata.error();
  options.metadata = std::move(*metadata);
  return options;
}

Error explain_timeout(LockClient& locks, const std::vector<LockName>& names, Millis wait,
                      Error error) {
  std::string shown;
  for (const auto& name : names) shown += (shown.empty() ? "" : ", ") + print_path(name);
  error.message = fmt::format("{} was not free within {}", shown, policy::print_duration(wait));
  const auto found = locks.get_all(names, Millis(500));  // only to say more: the wait is over
  if (!found) return error;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const LockInfo& info = (*found)[i];
    if (info.holders.empty()) continue;
    const auto& holder = info.holders.front();
    error.message += fmt::format("; {}held by {} for {}, {} waiting",
                                 names.size() > 1 ? print_path(names[i]) + " is " : "",
                                 holder.owner, about(holder.held_for), info.waiting);
    break;
  }
  return error;
}

}  // namespace baton::cli
