// baton store: migrate, status, doctor.

#include <optional>

#include <fmt/core.h>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"

namespace baton::cli {
namespace {

constexpr Millis kAskLimit{10'000};
constexpr Millis kMigrateLimit{120'000};
constexpr Millis kExamineLimit{60'000};
constexpr Millis kAnyTtl{30'000};  // for findings that do not depend on it

// Tables and functions of a schema change apart from each other: a release may bring new functions
// for tables that stay as they are. Only the examination looks at the functions. What it says is
// wrong with a schema of the right version, if anything.
std::optional<Finding> wrong_with_schema(StoreAdmin& admin, const Settings& settings) {
  if (!settings.store.starts_with("postgres")) return std::nullopt;
  const auto findings = admin.examine(kAnyTtl, BootClock::now() + kExamineLimit);
  if (!findings) return std::nullopt;
  for (const Finding& finding : *findings) {
    if (finding.code == "schema") return finding;
  }
  return std::nullopt;
}

std::string schema_of(const StoreStatus& status, const std::optional<Finding>& wrong) {
  if (status.schema_version == status.schema_expected && wrong) {
    return fmt::format("version {}, but {}; run 'baton store migrate'", status.schema_version,
                       wrong->what);
  }
  if (status.schema_version == status.schema_expected) {
    return fmt::format("version {}, as this baton wants", status.schema_version);
  }
  if (status.schema_version == 0) return "none; run 'baton store migrate'";
  if (status.schema_version < status.schema_expected) {
    return fmt::format("version {}, this baton wants {}; run 'baton store migrate'",
                       status.schema_version, status.schema_expected);
  }
  return fmt::format("version {}, this baton knows only {}; upgrade it", status.schema_version,
                     status.schema_expected);
}

std::string in_json(const std::string& store, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.begin_object().field("store", store).key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().field("code", finding.code);
    json.field("severity", to_string(finding.severity)).field("what", finding.what);
    json.field("consequence", finding.consequence).field("remedy", finding.remedy).end_object();
  }
  return json.end_array().end_object().text();
}

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::danger: return Style::red;
    case Severity::warning: return Style::yellow;
    case Severity::advice: break;
  }
  return Style::bold;
}

std::string in_words(const MigrationPlan& plan) {
  if (plan.empty()) {
    return fmt::format("the schema already has version {}: nothing is to be done", plan.to);
  }
  if (plan.functions) {
    return fmt::format(
        "would replace the functions of the schema by those of this baton; its tables already "
        "have version {}",
        plan.to);
  }
  if (plan.from == 0) return fmt::format("would make the schema, version {}", plan.to);
  return fmt::format("would bring the schema from version {} to {}", plan.from, plan.to);
}

// The script itself, or a comment: what comes out is always something that psql takes.
void show_sql(const Context& context, const MigrationPlan& plan) {
  if (plan.empty() || plan.sql.empty()) {
    context.out.line("-- " + in_words(plan) +
                     (plan.empty() ? "" : ", by 'baton store migrate': it takes no SQL"));
    return;
  }
  context.out.line("-- " + in_words(plan));
  context.out.line(plan.sql);
}

Result<int> show_plan(const Context& context, StoreAdmin& admin, bool sql) {
  const auto plan = admin.plan_migration(BootClock::now() + kAskLimit);
  if (!plan) return plan.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("from", plan->from).field("to", plan->to);
    json.field("functions_replaced", !plan->empty() && !plan->sql.empty()).field("dry_run", true);
    if (sql) json.field("sql", plan->sql);
    context.out.line(json.end_object().text());
  } else if (sql) {
    show_sql(context, *plan);
  } else {
    context.out.line(in_words(*plan));
  }
  return exit_code::ok;
}

}  // namespace

Result<int> store_migrate(Context& context, const StoreMigrateArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto admin = open_locks_admin(context, *settings);
  if (!admin) return admin.error();
  if (arguments.dry_run || arguments.sql) return show_plan(context, **admin, arguments.sql);
  const bool had_old_functions = wrong_with_schema(**admin, *settings).has_value();
  const auto versions = (*admin)->migrate(BootClock::now() + kMigrateLimit);
  if (!versions) return versions.error();
  const auto [from, to] = *versions;
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("from", from).field("to", to);
    json.field("functions_replaced", from != to || had_old_functions).end_object();
    context.out.line(json.text());
  } else if (from == to && had_old_functions) {
    context.out.line(
        fmt::format("replaced the functions of the schema by those of this baton; its tables "
                    "already have version {}",
                    to));
  } else if (from == to) {
    context.out.line(fmt::format("the schema already has version {}", to));
  } else if (from == 0) {
    context.out.line(fmt::format("made the schema, version {}", to));
  } else {
    context.out.line(fmt::format("brought the schema from version {} to {}", from, to));
  }
  return exit_code::ok;
}

Result<int> store_status(Context& context) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto admin = open_locks_admin(context, *settings);
  if (!admin) return admin.error();
  const auto status = (*admin)->status(BootClock::now() + kAskLimit);
  if (!status) return status.error();
  const auto wrong = wrong_with_schema(**admin, *settings);
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("kind", status->kind).field("location", status->location);
    json.field("schema_version", status->schema_version);
    json.field("schema_expected", status->schema_expected);
    json.field("schema_current", status->schema_version == status->schema_expected && !wrong);
    json.key("details").begin_object();
    for (const auto& [name, value] : status->details) json.field(name, value);
    json.end_object().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  std::size_t widest = std::string_view("location").size();
  for (const auto& [name, value] : status->details) widest = std::max(widest, name.size());
  const auto show = [&](std::string_view name, std::string_view value) {
    context.out.line(fmt::format("{:<{}}  {}", printable(name), widest, printable(value)));
  };
  show("store", status->kind);
  show("location", status->location);
  show("schema", schema_of(*status, wrong));
  for (const auto& [name, value] : status->details) show(name, value);
  return exit_code::ok;
}

Result<int> store_doctor(Context& context, const StoreDoctorArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  const auto ttl = parse_duration_argument("--ttl", arguments.ttl, Millis(1), kMaxTtl);
  if (!ttl) return ttl.error();
  auto admin = open_locks_admin(context, *settings);
  if (!admin) return admin.error();
  const auto findings = (*admin)->examine(*ttl, BootClock::now() + kExamineLimit);
  if (!findings) return findings.error();
  const std::string store = redact_url(settings->store);
  if (context.out.json()) {
    context.out.line(in_json(store, *findings));
  } else if (findings->empty()) {
    context.out.line(printable(store) + ": all is well");
  }
  bool well = true;
  for (const Finding& finding : *findings) {
    well = well && finding.severity == Severity::advice;
    if (context.out.json()) continue;
    const std::string title =
        fmt::format("{}: {}", to_string(finding.severity), printable(finding.what));
    context.out.line(context.out.styled(title, style_of(finding.severity)));
    context.out.line("  consequence: " + printable(finding.consequence));
    context.out.line("  remedy: " + printable(finding.remedy));
  }
  return well ? exit_code::ok : exit_code::error;
}

}  // namespace baton::cli
