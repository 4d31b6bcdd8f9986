#include "apps/documents/common/page.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "apps/documents/common/work.h"
#include "baton/event.h"
#include "event/message_headers.h"

namespace baton::documents {
namespace {

using Kind = Listing::Filter::Kind;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < 0) return std::nullopt;
  return value;
}

// PostgreSQL has no year 0.
bool is_time(const std::string& value) {
  return event::parse_time(value).has_value() && !value.starts_with("0000");
}

std::string wrong_filter(const Listing::Filter& filter, const std::string& value) {
  if (filter.kind == Kind::time && !is_time(value)) {
    return "must be a time such as 2026-11-18T20:14:03.271Z";
  }
  if (value.empty() || value.size() > kMaxEventText) return "must have 1 to 255 bytes";
  const auto& choices = filter.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) {
    return {};
  }
  std::string all;
  for (const std::string_view choice : choices)
    all += (all.empty() ? "" : ", ") + std::string(choice);
  return "must be one of " + all;
}

// A query parameter as a part of WHERE.
class Where {
 public:
  Where(const Listing& listing, const http::Request& request) {
    std::set<std::string_view> seen;
    for (const auto& [name, value] : request.query) {
      if (!seen.insert(name).second) {
        errors_.push_back({name, "is there more than once"});
      } else if (name == "limit") {
        const auto limit = whole(value);
        if (!limit || *limit < 1 || *limit > kMostItems) {
          errors_.push_back({name, "must be a number from 1 to " + std::to_string(kMostItems)});
        } else {
          limit_ = *limit;
        }
      } else if (name == "cursor") {
        if (listing.key_is_uuid ? !is_event_id(value) : !whole(value)) {
          errors_.push_back({name, "must be the `next` of an earlier page"});
        } else {
          const std::string behind = listing.newest_first ? " < " : " > ";
          if (listing.key_is_uuid) {
            add(listing.key + behind, value);
          } else {
            add(listing.key + behind, *whole(value));
          }
        }
      } else {
        filter(listing, name, value);
      }
    }
  }
  [[nodiscard]] const std::vector<FieldProblem>& errors() const { return errors_; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const sql::Values& values() const { return values_; }

 private:
  void filter(const Listing& listing, const std::string& name, const std::string& value) {
    const auto known =
        std::find_if(listing.filters.begin(), listing.filters.end(),
                     [&](const Listing::Filter& one) { return one.parameter == name; });
    if (known == listing.filters.end()) {
      errors_.push_back({name, "there is no such parameter"});
    } else if (std::string wrong = wrong_filter(*known, value); !wrong.empty()) {
      errors_.push_back({name, std::move(wrong)});
    } else {
      add(known->condition, value);
    }
  }
  void add(const std::string& condition, sql::Value value) {
    values_.push_back(std::move(value));
    text_ +=
        (text_.empty() ? " WHERE " : " AND ") + condition + "$" + std::to_string(values_.size());
  }

  std::vector<FieldProblem> errors_;
  std::int64_t limit_ = 50;
  std::string text_;
  sql::Values values_;
};

}  // namespace

http::Response answer_list(const Tx& tx, const Listing& listing, const http::Request& request) {
  const Where where(listing, request);
  if (!where.errors().empty()) {
    return problem(400, "a query parameter cannot be used", where.errors());
  }
  const auto rows =
      tx.query("SELECT " + listing.columns + " FROM " + listing.table + where.text() +
                   " ORDER BY " + listing.key + (listing.newest_first ? " DESC" : "") + " LIMIT " +
                   std::to_string(where.limit() + 1),
               where.values());
  nlohmann::json items = nlohmann::json::array();
  nlohmann::json next = nullptr;
  for (const sql::Row& row : rows) {
    if (std::cmp_equal(items.size(), where.limit())) break;
    items.push_back(listing.show(row));
    if (std::cmp_equal(items.size(), where.limit()) && rows.size() > items.size()) {
      next = row.text(0);
    }
  }
  return {.body = dump({{"items", std::move(items)}, {"next", std::move(next)}}) + "\n"};
}

}  // namespace baton::documents
