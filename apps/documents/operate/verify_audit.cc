#include "apps/documents/operate/verify_audit.h"

#include <charconv>
#include <cstdio>

#include "apps/common/start.h"
#include "apps/documents/audit/audit_table.h"
#include "apps/documents/common/work.h"

namespace baton::documents {
namespace {

Result<std::optional<audit::Seal>> parse_head(const std::string& text) {
  if (text.empty()) return std::optional<audit::Seal>();
  audit::Seal seal;
  const auto colon = text.find(':');
  const char* end = text.data() + std::min(colon, text.size());
  const auto read = std::from_chars(text.data(), end, seal.sequence);
  if (colon == std::string::npos || read.ec != std::errc() || read.ptr != end) {
    return Error{.code = Code::bad_request,
                 .message = "--known-head: SEQUENCE:HASH, as an earlier verify has printed it"};
  }
  seal.hash = text.substr(colon + 1);
  return std::optional(seal);
}

}  // namespace

Result<int> verify_audit(const Places& places, const std::string& known_head, bool json) {
  const auto known = parse_head(known_head);
  if (!known) return known.error();
  const auto session = places.look_into("audit");
  if (!session) return session.error();
  audit::ChainReport report;
  try {
    report = audit::verify_chain(Tx(**session), *known);
  } catch (const SqlError& failed) {
    return failed.error;
  }
  const std::string head = std::to_string(report.head.sequence) + ":" + report.head.hash;
  if (json) {
    std::printf("%s\n", dump({{"ok", report.wrong.empty()},
                              {"rows", report.rows},
                              {"unsealed", report.unsealed},
                              {"head", head},
                              {"wrong", report.wrong}})
                            .c_str());
  } else {
    for (const std::string& line : report.wrong) std::printf("%s\n", line.c_str());
    std::printf("%lld rows, %lld not sealed yet\nhead %s\n%s\n",
                static_cast<long long>(report.rows), static_cast<long long>(report.unsealed),
                head.c_str(),
                report.wrong.empty() ? "ok: nothing was changed, removed or inserted" : "NOT ok");
  }
  return report.wrong.empty() ? apps::kOk : apps::kError;
}

}  // namespace baton::documents
