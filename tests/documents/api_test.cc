// What the services answer: each operation, pages, filters and what they say of themselves.

#include <algorithm>
#include <functional>

#include "api_fixture.h"
#include "core/percent.h"

namespace baton::test {
namespace {

using nlohmann::json;

const std::vector<std::string> kInstances = {"ingestion-1", "validation-1", "enrichment-1",
                                             "audit-1", "notification-1"};

// All items of a list, page by page; `between` is called between two pages.
std::vector<json> all_pages(const std::function<json(const std::string&)>& ask_for,
                            const std::string& path, const std::function<void()>& between = {}) {
  std::vector<json> items;
  std::string cursor;
  for (int pages = 0; pages < 1'000; ++pages) {
    const json page = ask_for(path + (cursor.empty() ? "" : "&cursor=" + cursor));
    for (const auto& item : page.at("items")) items.push_back(item);
    if (page.at("next").is_null()) return items;
    cursor = page.at("next").get<std::string>();
    if (between) between();
  }
  throw std::runtime_error("the pages do not end");
}

TEST_F(DocumentsApi, every_service_says_how_it_is) {
  for (const std::string& instance : kInstances) {
    EXPECT_EQ(get(instance, "/healthz").status, 200) << instance;
    EXPECT_TRUE(poll_until([&] { return get(instance, "/readyz").status == 200; })) << instance;
    EXPECT_EQ(get(instance, "/metrics").status, 200) << instance;
    EXPECT_EQ(get(instance, "/openapi.json").status, 200) << instance;
    EXPECT_EQ(call(instance, {.method = "HEAD", .path = "/healthz", .headers = {}}).status, 200);
  }
}

TEST_F(DocumentsApi, a_document_is_201_with_its_location_and_can_be_read_there) {
  json document = a_document("A title with ünïcode and \"quotes\"");
  document["metadata"] = {{"department", "sales"}, {"year", 2026}, {"draft", false}, {"x", 1.5}};
  const auto answer = post(document, {"X-Correlation-Id: read-me"});
  ASSERT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(answer.headers.at("x-correlation-id"), "read-me");
  const json read = got("ingestion-1", answer.headers.at("location"));
  for (const char* field : {"title", "contentType", "owner", "metadata"}) {
    EXPECT_EQ(read.at(field), document.at(field)) << field;
  }
  EXPECT_EQ(read.at("correlationId"), "read-me");
  EXPECT_TRUE(platform().reaches(read.at("id"), "ENRICHED"));
  const json enriched = got("ingestion-2", answer.headers.at("location"));
  EXPECT_GT(enriched.at("details").at("wordCount").get<int>(), 5);
  EXPECT_EQ(call("ingestion-1", {.method = "HEAD", .path = answer.headers.at("location")}).status,
            200);
}

TEST_F(DocumentsApi, a_document_by_url_has_no_content) {
  json document = a_document("By URL");
  document.erase("content");
  document["contentUrl"] = "https://example.org/letter.txt";
  const auto answer = post(document);
  ASSERT_EQ(answer.status, 201) << answer.body;
  const json read = got("ingestion-1", answer.headers.at("location"));
  EXPECT_EQ(read.at("contentUrl"), document.at("contentUrl"));
}

TEST_F(DocumentsApi, the_reasons_of_a_rejection_can_be_read) {
  json document = a_document("Rejected");
  document["content"] = "this is malware";
  const auto answer = post(document);
  ASSERT_EQ(answer.status, 201) << answer.body;
  const std::string id = json::parse(answer.body).at("id");
  ASSERT_TRUE(platform().reaches(id, "REJECTED"));
  EXPECT_EQ(got("ingestion-1", "/documents/" + id).at("details").at("reasons")[0].at("code"),
            "forbidden-word");
}

TEST_F(DocumentsApi, a_document_that_is_not_there_is_404) {
  EXPECT_EQ(get("ingestion-1", "/documents/" + make_event_id()).status, 404);
  EXPECT_EQ(get("ingestion-1", "/documents/7").status, 404);
}

TEST_F(DocumentsApi, documents_are_listed_by_status_owner_and_correlation_id) {
  json mine = a_document("Mine");
  mine["owner"] = "lister@example.org";
  const std::string id = json::parse(post(mine, {"X-Correlation-Id: list-me"}).body).at("id");
  ASSERT_TRUE(platform().reaches(id, "ENRICHED"));
  const std::string owner = "owner=" + core::percent_encoded("lister@example.org");
  for (const std::string& filter : {owner, owner + "&status=ENRICHED",
                                    std::string("correlationId=list-me"), owner + "&limit=1"}) {
    const json page = got("ingestion-1", "/documents?" + filter);
    ASSERT_EQ(page.at("items").size(), 1U) << filter;
    EXPECT_EQ(page.at("items")[0].at("id"), id);
  }
  for (const std::string& filter : {owner + "&status=UPLOADED", std::string("owner=nobody")}) {
    EXPECT_TRUE(got("ingestion-1", "/documents?" + filter).at("items").empty()) << filter;
  }
}

// The list has the newest first, and every document that was there at the start once, however many
// are added while it is read.
TEST_F(DocumentsApi, pages_of_documents_are_stable_while_documents_are_added) {
  const auto add = [](int number) {
    json document = a_document("Page " + std::to_string(number));
    document["owner"] = "pager";
    return json::parse(post(document).body).at("id").get<std::string>();
  };
  std::set<std::string> at_the_start;
  for (int i = 0; i < 23; ++i) at_the_start.insert(add(i));
  int added = 100;
  std::vector<std::string> seen;
  for (const json& item :
       all_pages([](const std::string& path) { return got("ingestion-2", path); },
                 "/documents?owner=pager&limit=4", [&] { (void)add(added++); })) {
    seen.push_back(item.at("id"));
  }
  EXPECT_GT(added, 103) << "nothing was added meanwhile";
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), seen.size()) << "one is twice";
  for (const std::string& id : at_the_start) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), id), 1) << id;
  }
}

TEST_F(DocumentsApi, the_audit_log_is_listed_by_document_correlation_type_and_time) {
  const std::string id = platform().submit(a_document("Audited"), "audit-me");
  ASSERT_TRUE(platform().reaches(id, "ENRICHED"));
  const auto list = [](const std::string& filter) {
    return got("audit-1", "/audit?" + filter).at("items");
  };
  ASSERT_TRUE(poll_until([&] { return list("documentId=" + id).size() == 3; }));
  const json all = list("documentId=" + id);
  EXPECT_EQ(list("correlationId=audit-me"), all);
  const json validated = list("eventType=DocumentValidated&documentId=" + id);
  ASSERT_EQ(validated.size(), 1U);

  const std::string time = validated[0].at("occurredAt");
  const auto at = [&](const json& events) {
    return std::count_if(events.begin(), events.end(),
                         [&](const json& one) { return one.at("occurredAt") == time; });
  };
  EXPECT_GE(at(list("documentId=" + id + "&from=" + time)), 1) << "from includes its time";
  EXPECT_EQ(at(list("documentId=" + id + "&to=" + time)), 0) << "to does not";
  EXPECT_TRUE(list("documentId=" + id + "&from=" + time + "&to=" + time).empty());
  EXPECT_EQ(list("documentId=" + id +
                 "&from=0001-01-01T00:00:00.000Z"
                 "&to=9999-12-31T23:59:59.999Z"),
            all);
}

TEST_F(DocumentsApi, pages_of_the_audit_log_have_every_event_once) {
  const std::string id = platform().submit(a_document("Paged"), "page-the-log");
  ASSERT_TRUE(platform().reaches(id, "ENRICHED"));
  const std::string filter = "/audit?correlationId=page-the-log&limit=";
  const auto ask_for = [](const std::string& path) { return got("audit-1", path); };
  ASSERT_TRUE(poll_until([&] { return ask_for(filter + "200").at("items").size() == 3; }));
  const auto one_by_one =
      all_pages(ask_for, filter + "1", [&] { (void)platform().submit(a_document("Meanwhile")); });
  EXPECT_EQ(json(one_by_one), ask_for(filter + "200").at("items"));
}

TEST_F(DocumentsApi, preferences_say_what_a_user_is_told_and_history_what_was_told) {
  const std::string user = "/preferences/" + core::percent_encoded("tell/me ünd@example.org");
  const json all = {{"email", true}, {"sms", true}, {"push", true}};
  EXPECT_EQ(got("notification-1", user), all) << "all channels until somebody says otherwise";
  const auto set = [&](const json& body) {
    return call("notification-1", {.method = "PUT", .path = user, .body = body.dump()});
  };
  EXPECT_EQ(json::parse(set({{"email", false}}).body),
            json({{"email", false}, {"sms", true}, {"push", true}}));
  EXPECT_EQ(set(json::object()).status, 200);
  EXPECT_FALSE(got("notification-1", user).at("email"));

  json document = a_document("Preferred");
  document["owner"] = "tell/me ünd@example.org";
  const std::string id = platform().submit(document, "told");
  ASSERT_TRUE(platform().verify().at("ok"));
  const auto list = [](const std::string& filter) {
    return got("notification-1", "/notifications?" + filter).at("items");
  };
  const json told = list("documentId=" + id);
  ASSERT_EQ(told.size(), 1U) << "push for validated; not email for enriched";
  EXPECT_EQ(told[0].at("channel"), "push");
  EXPECT_EQ(list("correlationId=told"), told);
  EXPECT_EQ(list("userId=" + core::percent_encoded("tell/me ünd@example.org")), told);
  EXPECT_TRUE(list("documentId=" + id + "&channel=email").empty());
}

TEST_F(DocumentsApi, a_usable_correlation_id_is_kept_and_any_other_replaced_and_never_echoed) {
  const auto sent = [](const std::vector<std::string>& headers) {
    const auto answer = post(a_document(), headers);
    EXPECT_EQ(answer.status, 201) << answer.body;
    EXPECT_EQ(json::parse(answer.body).at("correlationId"), answer.headers.at("x-correlation-id"));
    return answer.headers.at("x-correlation-id");
  };
  EXPECT_EQ(sent({"X-Correlation-Id: an-id/of:mine"}), "an-id/of:mine");
  EXPECT_EQ(sent({"X-Correlation-Id: " + std::string(128, 'c')}), std::string(128, 'c'));
  for (const std::string& bad :
       {std::string(129, 'c'), std::string(5'000, 'c'), std::string("two words"),
        std::string("tab\there"), std::string("caf\xc3\xa9"), std::string("\xff\xfe"),
        std::string("")}) {
    const std::string given = sent({"X-Correlation-Id: " + bad});
    EXPECT_TRUE(is_event_id(given)) << given;
  }
  EXPECT_TRUE(is_event_id(sent({"X-Correlation-Id: one", "X-Correlation-Id: two"})));
  EXPECT_TRUE(is_event_id(sent({})));
  EXPECT_EQ(get("audit-1", "/audit?limit=x").headers.count("x-correlation-id"), 1U)
      << "a refusal has one, too";
}

// Section 8.6 of the design.
TEST_F(DocumentsApi, correlation_ids_are_columns_of_documents_audit_log_and_notification_history) {
  const std::string id = platform().submit(a_document(), "in-the-tables");
  ASSERT_TRUE(platform().verify().at("ok"));
  const std::map<std::string, std::pair<std::string, std::int64_t>> tables = {
      {"ingestion", {"documents", 1}},
      {"audit", {"audit_log", 3}},
      {"notification", {"notification_history", 2}}};
  for (const auto& [service, table] : tables) {
    EXPECT_EQ(rows(service, "SELECT count(*) FROM " + table.first + " WHERE correlation_id = $1",
                   {std::string("in-the-tables")}),
              table.second)
        << table.first;
  }
}

TEST_F(DocumentsApi, idx_documents_correlation_id_and_idx_audit_log_correlation_id_are_there) {
  for (const auto& [service, table] :
       {std::pair("ingestion", "documents"), std::pair("audit", "audit_log")}) {
    const std::string index = "idx_" + std::string(table) + "_correlation_id";
    const auto found = platform().database(service)->query(
        on_servers() ? "SELECT indexdef FROM pg_indexes WHERE tablename = $1 AND indexname = $2"
                     : "SELECT sql FROM sqlite_master WHERE tbl_name = $1 AND name = $2",
        {std::string(table), index});
    ASSERT_EQ(found.value().size(), 1U) << index;
    EXPECT_NE(found.value().front().text(0).find("(correlation_id)"), std::string::npos) << index;
  }
}

TEST_F(DocumentsApi, a_service_without_its_broker_is_not_ready_but_documents_are_taken) {
  if (!on_servers()) GTEST_SKIP() << "the embedded broker is a file: it does not go away";
  ASSERT_TRUE(platform().verify().at("ok"));  // nothing is on its way
  rabbit().ctl({"stop_app"});
  EXPECT_TRUE(poll_until([&] { return get("validation-1", "/readyz").status == 503; }));
  const json body = json::parse(get("validation-1", "/readyz").body);
  EXPECT_NE(body.at("reasons").dump().find("broker"), std::string::npos) << body;
  EXPECT_EQ(body.at("database"), "ok");
  EXPECT_TRUE(poll_until([&] { return get("ingestion-1", "/readyz").status == 200; }));
  const auto answer = post(a_document("Without a broker"));
  EXPECT_EQ(answer.status, 201);
  // --max-lag is 1 s here: its event now waits for longer. The replica that has its lane says so.
  std::string late;
  EXPECT_TRUE(poll_until(
      [&] {
        for (const char* replica : {"ingestion-1", "ingestion-2"}) {
          if (get(replica, "/readyz").body.find("waits in the outbox") == std::string::npos)
            continue;
          late = replica;
        }
        return !late.empty();
      },
      2 * patience));
  EXPECT_EQ(get(late, "/readyz").status, 503);
  rabbit().ctl({"start_app"});
  EXPECT_TRUE(platform().reaches(json::parse(answer.body).at("id"), "ENRICHED"));
  EXPECT_TRUE(poll_until([&] { return get("validation-1", "/readyz").status == 200; }));
}

}  // namespace
}  // namespace baton::test
