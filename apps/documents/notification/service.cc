#include "apps/documents/notification/service.h"

#include <map>
#include <utility>

#include "apps/documents/common/page.h"
#include "apps/documents/common/topology.h"
#include "apps/documents/notification/openapi.json.h"
#include "apps/documents/notification/postgres_tables.sql.h"
#include "apps/documents/notification/preferences.h"
#include "apps/documents/notification/rules.h"
#include "apps/documents/notification/sender.h"
#include "apps/documents/notification/sqlite_tables.sql.h"

namespace baton::documents::notification {
namespace {

namespace tables = embedded::apps_documents_notification;

// What was given to the sender, by channel and event. A message that is sent again after a crash
// counts again.
class Counts {
 public:
  explicit Counts(observe::Metrics& metrics) {
    for (const auto event : {type::validated, type::rejected, type::enriched, type::failed}) {
      for (const auto channel : channels_of(event)) {
        const std::string name(channel);
        sent_.emplace(std::pair(name, std::string(event)),
                      metrics.counter("documents_notifications_total", "Messages to users.",
                                      {{"channel", name}, {"event_type", std::string(event)}}));
        failures_.emplace(name,
                          metrics.counter("documents_notification_failures_total",
                                          "Messages that could not be sent; they are tried again.",
                                          {{"channel", name}}));
      }
    }
  }
  void sent(const std::string& channel, const std::string& event) const {
    if (const auto found = sent_.find({channel, event}); found != sent_.end()) found->second.add();
  }
  void failed(const std::string& channel) const {
    if (const auto found = failures_.find(channel); found != failures_.end()) found->second.add();
  }

 private:
  std::map<std::pair<std::string, std::string>, observe::Counter> sent_;
  std::map<std::string, observe::Counter> failures_;
};

// False: it was sent before.
bool add_to_history(const Work& work, const Notice& notice) {
  static const sql::Statement insert(
      "INSERT INTO notification_history (event_id, channel, user_id, event_type,"
      " document_id, idempotency_key, subject, correlation_id, sent_at)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING");
  return work.tx.write(insert, {work.event().id, notice.channel, notice.user, work.event().type,
                                notice.document_id, notice.idempotency_key, notice.subject,
                                notice.correlation_id, now_text()}) == 1;
}

// The row first, the message second, the commit last: a message whose row was not committed is sent
// again with the same key, which its sender knows.
Handled notify(Work& work, Sender& sender, const Counts& counts) {
  const auto payload = work.payload();
  const std::string user = payload.value("owner", "");
  if (user.empty()) return business_error("the event names no owner");
  const Text text = text_of(work.event().type, payload);
  std::string told;
  for (const std::string_view channel : channels_of(work.event().type)) {
    if (!wants(work.tx, user, channel)) continue;
    const Notice notice{
        .idempotency_key = work.event().id + ":" + std::string(channel) + ":" + user,
        .channel = std::string(channel),
        .user = user,
        .subject = text.subject,
        .body = text.body,
        .document_id = work.document(),
        .correlation_id = work.event().correlation_id};
    if (!add_to_history(work, notice)) continue;
    if (auto sent = sender.send(notice); !sent) {
      counts.failed(notice.channel);
      return failed(sent.error().message);
    }
    counts.sent(notice.channel, work.event().type);
    told += (told.empty() ? "" : ",") + notice.channel;
  }
  work.log_field("channels", told);
  return done();
}

nlohmann::json show(const sql::Row& row) {
  return {{"id", row.integer(0)},   {"eventId", row.text(1)},       {"channel", row.text(2)},
          {"userId", row.text(3)},  {"eventType", row.text(4)},     {"documentId", row.text(5)},
          {"subject", row.text(6)}, {"correlationId", row.text(7)}, {"sentAt", row.text(8)}};
}

http::Response list(sql::Connection& database, const http::Request& request) {
  const Tx tx(database);
  return answer_list(
      tx,
      {.columns = "id, event_id, channel, user_id, event_type, document_id, subject,"
                  " correlation_id, " +
                  tx.time("sent_at"),
       .table = "notification_history",
       .key = "id",
       .filters = {{"documentId", "document_id = "},
                   {"userId", "user_id = "},
                   {"correlationId", "correlation_id = "},
                   {"channel", "channel = ", Listing::Filter::Kind::text, {kEmail, kSms, kPush}}},
       .show = show},
      request);
}

}  // namespace

ServiceSpec make_service(const ServiceContext& context) {
  const std::shared_ptr<Sender> sender = spool_sender(context.settings.spool);
  return {.postgres_tables = tables::postgres_tables_sql,
          .sqlite_tables = tables::sqlite_tables_sql,
          .needs_others = true,
          .queue = std::string(queue::notification),
          .handle = [sender, counts = Counts(context.metrics)](
                        Work& work) { return notify(work, *sender, counts); },
          .before_commit = [sender] { return sender->flush(); },
          .add_routes =
              [&database = context.database,
               log = context.log.named("documents.notification")](http::Router& router) {
                router.add("GET", "/notifications", with_database(database, list, log));
                router.add("GET", "/preferences/{user}",
                           with_database(database, show_preferences, log));
                router.add("PUT", "/preferences/{user}",
                           with_database(database, set_preferences, log));
              },
          .api = embedded::apps_documents_notification::openapi_json};
}

}  // namespace baton::documents::notification
