#include "store/postgres/statements.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "core/apply.h"
#include "json/json.h"
#include "store/postgres/statements/acquire.sql.h"
#include "store/postgres/statements/acquire_many.sql.h"
#include "store/postgres/statements/acquire_new.sql.h"
#include "store/postgres/statements/acquire_new_many.sql.h"
#include "store/postgres/statements/acquire_noted.sql.h"
#include "store/postgres/statements/apply.sql.h"
#include "store/postgres/statements/apply_one.sql.h"
#include "store/postgres/statements/busy.sql.h"
#include "store/postgres/statements/claim.sql.h"
#include "store/postgres/statements/find.sql.h"
#include "store/postgres/statements/get.sql.h"
#include "store/postgres/statements/release.sql.h"
#include "store/postgres/statements/release_many.sql.h"
#include "store/postgres/statements/release_noted.sql.h"
#include "store/postgres/statements/renew.sql.h"
#include "store/postgres/statements/sweep.sql.h"

namespace baton::store::postgres {
namespace {

namespace statement_files = embedded::store_postgres_statements;

struct Source {
  StatementId id;
  const char* name;
  std::string_view sql;
};
// In the order of the enum.
constexpr std::array kSources = {
    Source{StatementId::acquire, "baton_acquire", statement_files::acquire_sql},
    Source{StatementId::busy, "baton_busy", statement_files::busy_sql},
    Source{StatementId::acquire_new, "baton_acquire_new", statement_files::acquire_new_sql},
    Source{StatementId::acquire_many, "baton_acquire_many", statement_files::acquire_many_sql},
    Source{StatementId::acquire_new_many, "baton_acquire_new_many",
           statement_files::acquire_new_many_sql},
    Source{StatementId::acquire_noted, "baton_acquire_noted", statement_files::acquire_noted_sql},
    Source{StatementId::claim, "baton_claim", statement_files::claim_sql},
    Source{StatementId::renew, "baton_renew", statement_files::renew_sql},
    Source{StatementId::release, "baton_release", statement_files::release_sql},
    Source{StatementId::release_many, "baton_release_many", statement_files::release_many_sql},
    Source{StatementId::release_noted, "baton_release_noted", statement_files::release_noted_sql},
    Source{StatementId::get, "baton_get", statement_files::get_sql},
    Source{StatementId::apply_one, "baton_apply_one", statement_files::apply_one_sql},
    Source{StatementId::apply, "baton_apply", statement_files::apply_sql},
    Source{StatementId::find, "baton_find", statement_files::find_sql},
    Source{StatementId::sweep, "baton_sweep", statement_files::sweep_sql},
};
static_assert(kSources.size() <= kMaxStatements);

std::optional<std::string> metadata_text(const Request& request) {
  if (request.metadata.empty()) return std::nullopt;
  return nlohmann::json(request.metadata).dump();
}

std::string channel_of(const Request& request) {
  return request.channel.empty() ? std::string() : notify_channel(request.channel);
}

std::optional<GrantId> grant_of(const Request& request) {
  return request.grant.empty() ? std::nullopt : std::optional(request.grant);
}

std::int16_t number_of(Mode mode) { return static_cast<std::int16_t>(mode); }

std::vector<const Target*> names_of(const Batch& requests) {
  std::vector<const Target*> names;
  for (const Request* request : requests) {
    for (const Target& target : request->targets) names.push_back(&target);
  }
  return names;
}

// A parameter's name and type, and how requests give it its value: as one value or as an array.
struct Parameter {
  std::string_view name;
  Type type;
  void (*one)(Params&, const Request&) = nullptr;
  void (*all)(Params&, const Batch&) = nullptr;
};

template <typename Get>
constexpr Parameter of_request(std::string_view name, Get) {
  return {name, type_of<std::invoke_result_t<Get, const Request&>>(),
          [](Params& params, const Request& request) { params.add(Get{}(request)); },
          [](Params& params, const Batch& requests) {
            params.array(type_of<std::invoke_result_t<Get, const Request&>>(), requests,
                         [](const Request* request) { return Get{}(*request); });
          }};
}

// An array with an element for each name of each request.
template <typename Get>
constexpr Parameter of_names(std::string_view name, Get) {
  return {name, type_of<std::invoke_result_t<Get, const Target&>>(), nullptr,
          [](Params& params, const Batch& requests) {
            params.array(type_of<std::invoke_result_t<Get, const Target&>>(), names_of(requests),
                         [](const Target* target) { return Get{}(*target); });
          }};
}

using Text = std::string_view;
constexpr std::string_view kTestClock = "test_clock";

constexpr std::array kParameters = {
    of_request("verb", [](const Request& r) { return static_cast<std::int16_t>(r.verb); }),
    of_request("grant_id", [](const Request& r) { return grant_of(r); }),
    of_request("key", [](const Request& r) { return Text(r.targets[0].key); }),
    of_request("mode", [](const Request& r) { return number_of(r.targets[0].mode); }),
    of_request("name_count",
               [](const Request& r) { return static_cast<std::int32_t>(r.targets.size()); }),
    of_names("every_key", [](const Target& target) { return Text(target.key); }),
    of_names("every_mode", [](const Target& target) { return number_of(target.mode); }),
    of_request("ttl", [](const Request& r) { return r.ttl.count(); }),
    of_request("queue_ttl", [](const Request& r) { return r.queue_ttl.count(); }),
    of_request("claim_within", [](const Request& r) { return r.claim_within.count(); }),
    of_request("at_least_for", [](const Request& r) { return r.at_least_for.count(); }),
    of_request("tombstone_ttl", [](const Request& r) { return r.tombstone_ttl.count(); }),
    of_request("if_ordinal_below", [](const Request& r) { return r.if_ordinal_below; }),
    of_request("note_ordinal", [](const Request& r) { return r.change.ordinal; }),
    of_request("note_text", [](const Request& r) { return r.change.text; }),
    of_request("schema_version", [](const Request& r) { return schema_version_of(r); }),
    of_request("predicate", [](const Request& r) { return Text(r.predicate); }),
    of_request("owner", [](const Request& r) { return Text(r.owner); }),
    of_request("channel", [](const Request& r) { return channel_of(r); }),
    of_request("metadata", [](const Request& r) { return metadata_text(r); }),
    of_request("heir", [](const Request& r) { return Text(r.to); }),
    of_request("reason", [](const Request& r) { return Text(r.reason); }),
    of_request(
        "flag",
        [](const Request& r) { return r.verb == Verb::break_ ? r.immediately : r.converting; }),
    Parameter{kTestClock, Type::int8},
    // Of find and sweep.
    Parameter{"prefix", Type::text},
    Parameter{"after", Type::text},
    Parameter{"idle", Type::boolean},
    Parameter{"max_rows", Type::int4},
    Parameter{"max_waiters", Type::int8},
};

const Parameter& parameter_named(std::string_view name) {
  const auto found = std::find_if(kParameters.begin(), kParameters.end(),
                                  [&](const Parameter& one) { return one.name == name; });
  if (found == kParameters.end()) {
    throw std::logic_error("no parameter is called :" + std::string(name));
  }
  return *found;
}

// A statement with its names turned into numbers.
class Prepared {
 public:
  explicit Prepared(const Source& source) {
    number_names(source.sql);
    statement_ = {static_cast<std::size_t>(source.id), source.name, text_, {}};
    for (const Use& use : uses_) {
      statement_.types.push_back(use.array ? array_oid(use.parameter->type)
                                           : static_cast<Oid>(use.parameter->type));
    }
  }
  Prepared(const Prepared&) = delete;  // the statement refers to the text
  Prepared& operator=(const Prepared&) = delete;

  struct Use {
    const Parameter* parameter;
    bool array;
    bool operator==(const Use&) const = default;
  };
  [[nodiscard]] const Statement& statement() const { return statement_; }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }

 private:
  // Copies everything but comments and names. The statements have no colon in a literal.
  void number_names(std::string_view sql) {
    for (std::size_t at = 0; at < sql.size();) {
      if (sql.substr(at).starts_with("--")) {
        at = std::min(sql.find('\n', at), sql.size());
      } else if (sql.substr(at).starts_with("::")) {
        text_ += "::";
        at += 2;
      } else if (sql[at] == ':') {
        const std::size_t end = sql.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
        const std::string_view name = sql.substr(at + 1, end - at - 1);
        const bool array = sql.substr(end).starts_with("[]");
        at = end + (array ? 2 : 0);
        if (name == "now") {
          text_ += "coalesce(" + number_of_use({&parameter_named(kTestClock), false}) +
                   ", (date_part('epoch', clock_timestamp()) * 1000000)::bigint)";
        } else {
          text_ += number_of_use({&parameter_named(name), array});
        }
      } else {
        text_ += sql[at++];
      }
    }
  }

  std::string number_of_use(Use use) {
    auto found = std::find(uses_.begin(), uses_.end(), use);
    if (found == uses_.end()) found = uses_.insert(found, use);
    return "$" + std::to_string(found - uses_.begin() + 1);
  }

  std::string text_;
  std::vector<Use> uses_;  // [n] is $(n + 1)
  Statement statement_;
};

const Prepared& prepared(StatementId id) {
  static const auto all = [] {
    std::vector<std::unique_ptr<const Prepared>> made;
    for (const Source& source : kSources) made.push_back(std::make_unique<Prepared>(source));
    return made;
  }();
  return *all.at(static_cast<std::size_t>(id));
}

std::optional<std::int64_t> micros(TestClock now) {
  if (!now) return std::nullopt;
  return now->count();
}

}  // namespace

const Statement& statement(StatementId id) { return prepared(id).statement(); }

Params bind(StatementId id, const Batch& requests, TestClock now) {
  Params params;
  params.reserve(512 + 256 * requests.size());
  for (const auto& [parameter, array] : prepared(id).uses()) {
    if (parameter->name == kTestClock) {
      params.add(micros(now));
    } else if (array) {
      parameter->all(params, requests);
    } else {
      parameter->one(params, *requests.at(0));
    }
  }
  return params;
}

Params bind(StatementId id, std::initializer_list<NamedValue> values, TestClock now) {
  Params params;
  for (const auto& use : prepared(id).uses()) {
    if (use.parameter->name == kTestClock) {
      params.add(micros(now));
      continue;
    }
    const auto found = std::find_if(values.begin(), values.end(), [&](const NamedValue& one) {
      return one.name == use.parameter->name;
    });
    if (found == values.end()) {
      throw std::logic_error("no value for :" + std::string(use.parameter->name));
    }
    std::visit([&](const auto& value) { params.add(value); }, found->value);
  }
  return params;
}

std::optional<std::int64_t> schema_version_of(const Request& request) {
  const bool matters =
      request.verb == Verb::acquire || request.verb == Verb::claim || request.verb == Verb::convert;
  if (!matters || request.targets[0].key == core::kSchemaKey) return std::nullopt;
  return request.schema_version;
}

std::string notify_channel(std::string_view channel) {
  // Two 64-bit FNV-1a sums. A collision would only wake a client for nothing.
  std::uint64_t a = 0xcbf29ce484222325ULL;
  std::uint64_t b = 0x9ae16a3b2f90404fULL;
  for (const char c : channel) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    b = (b + static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15ULL;
    b ^= b >> 29;
  }
  return "baton_" + to_string(GrantId{a, b});
}

}  // namespace baton::store::postgres
