#include "apps/documents/notification/preferences.h"

#include "apps/documents/common/problem.h"
#include "apps/documents/common/work.h"
#include "apps/documents/notification/rules.h"
#include "baton/event.h"

namespace baton::documents::notification {

namespace {

http::Response wrong_user() {
  return problem(400, "a part of the path cannot be used", {{"user", "must have 1 to 255 bytes"}});
}

}  // namespace

bool wants(const Tx& tx, const std::string& user, std::string_view channel) {
  static const sql::Statement find(
      "SELECT enabled FROM notification_preferences WHERE user_id = $1 AND channel = $2");
  const auto rows = tx.query(find, {user, std::string(channel)});
  return rows.empty() || rows.front().integer(0) != 0;
}

http::Response show_preferences(sql::Connection& database, const http::Request& request) {
  const std::string user(request.parameter("user"));
  if (user.size() > kMaxEventText) return wrong_user();
  nlohmann::json shown = nlohmann::json::object();
  for (const auto channel : {kEmail, kSms, kPush}) {
    shown[std::string(channel)] = wants(Tx(database), user, channel);
  }
  return {.body = dump(shown) + "\n"};
}

http::Response set_preferences(sql::Connection& database, const http::Request& request) {
  const std::string user(request.parameter("user"));
  if (user.empty() || user.size() > kMaxEventText) return wrong_user();
  if (auto refused = refuse_other_than_json(request)) return *refused;
  const auto body = parse_json(request.body);
  if (!body.is_object())
    return problem(400, "the body is not a JSON object, or is nested too deeply");
  std::vector<FieldProblem> errors;
  for (const auto& [channel, enabled] : body.items()) {
    if (errors.size() == kMostErrors) break;
    if (!is_channel(channel)) {
      errors.push_back({pointer_to(channel), "there is no such channel"});
    } else if (!enabled.is_boolean()) {
      errors.push_back({pointer_to(channel), "must be true or false"});
    }
  }
  if (!errors.empty()) {
    return problem(422, "the preferences cannot be stored", errors);
  }
  auto transaction = need(sql::Transaction::begin(database));
  for (const auto& [channel, enabled] : body.items()) {
    Tx(transaction)
        .write(
            "INSERT INTO notification_preferences (user_id, channel, enabled, updated_at)"
            " VALUES ($1, $2, $3, $4) ON CONFLICT (user_id, channel)"
            " DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at",
            {user, channel, std::int64_t{enabled.get<bool>() ? 1 : 0}, now_text()});
  }
  need(transaction.commit());
  return show_preferences(database, request);
}

}  // namespace baton::documents::notification
