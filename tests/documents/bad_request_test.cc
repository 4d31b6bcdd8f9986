// Requests that are wrong, large or hostile: each gets the right 4xx as a problem, and nothing is
// stored.

#include <algorithm>

#include "api_fixture.h"
#include "core/percent.h"

namespace baton::test {
namespace {

using nlohmann::json;

constexpr const char* kJson = "Content-Type: application/json";

// What requests can change.
std::string stored(Platform& platform) {
  const auto all = [&](const char* service, const std::string& sql) {
    return platform.database(service)->query(sql).value().front().text(0);
  };
  return all("ingestion", "SELECT count(*) FROM documents") + " documents, " +
         all("ingestion", "SELECT count(*) FROM idempotency_keys") + " keys, event " +
         all("ingestion", "SELECT coalesce(max(position), 0) FROM outbox_events") + ", " +
         all("notification", "SELECT count(*) FROM notification_preferences") + " preferences";
}

json with(const char* field, const json& value) {
  json document = a_document();
  document[field] = value;
  return document;
}
json without(const char* field) {
  json document = a_document();
  document.erase(field);
  return document;
}

class BadRequest : public DocumentsApi {
 protected:
  void SetUp() override { before_ = stored(platform()); }
  void TearDown() override { EXPECT_EQ(stored(platform()), before_) << "something was stored"; }

  // The problem; `field` must be among its errors if it is not empty.
  static json refused(int status, const HttpAnswer& answer, const std::string& field = "") {
    EXPECT_EQ(answer.status, status) << answer.body.substr(0, 500);
    json problem = json::parse(answer.body, nullptr, false);
    if (!problem.is_object()) return json::object();
    bool named = field.empty();
    for (const auto& error : problem.value("errors", json::array())) {
      named = named || error.at("field") == field;
    }
    EXPECT_TRUE(named) << field << " is not named: " << problem;
    return problem;
  }
  static HttpAnswer send(const std::string& body, std::vector<std::string> headers = {kJson}) {
    return call("ingestion-1", {.body = body, .headers = std::move(headers)});
  }
  // Bytes as they are; `path` and `method` say what they ask for.
  static HttpAnswer raw(const std::string& bytes, const std::string& method = "POST",
                        const std::string& path = "/documents") {
    HttpClient client(platform().port("ingestion-1"));
    client.send(bytes);
    return read("ingestion-1", {.method = method, .path = path}, client.read(method == "HEAD"));
  }
  static std::string head(const std::string& more) {
    return "POST /documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Content-Type: application/json\r\n" +
           more;
  }

 private:
  std::string before_;
};

TEST_F(BadRequest, a_body_that_is_no_json_object_is_400) {
  const std::string good = a_document().dump();
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("nonsense"), std::string("[]"),
        std::string("null"), std::string("7"), std::string("\"text\""), good + "}", good + good,
        good.substr(0, good.size() - 1), std::string("{'title': 'x'}"),
        std::string("{\"title\": NaN}"), std::string("{\"title\": 0x10}"),
        std::string("{\"title\": 01}"), std::string("{\"title\": \"a\nb\"}"), std::string("\0", 1),
        std::string(1'000, '\0')}) {
    refused(400, send(body));
  }
}

TEST_F(BadRequest, text_that_is_not_unicode_is_400) {
  for (const std::string& text :
       {std::string("\xff"), std::string("\xc3"), std::string("\xc0\xaf"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"), std::string("\\ud800"),
        std::string("\\udc00\\ud800"), std::string("\\ud800x"), std::string("\\u12")}) {
    refused(400, send(R"({"title": ")" + text +
                      R"(", "contentType": "text/plain", "owner": "ann", "content": "x"})"));
  }
}

TEST_F(BadRequest, numbers_that_no_computer_can_hold_are_400) {
  for (const char* number : {"1e999", "-1e999", "1e99999999999999999999"}) {
    json document = a_document();
    std::string text = document.dump();
    text.insert(1, R"("metadata": {"n": )" + std::string(number) + "}, ");
    refused(400, send(text));
  }
}

TEST_F(BadRequest, nesting_of_200000_levels_is_400) {
  for (const std::string& level : {std::string("["), std::string("{\"a\":")}) {
    std::string deep;
    for (int i = 0; i < 200'000; ++i) deep += level;
    refused(400, send(deep));
    refused(400, send(R"({"title": )" + deep));
    refused(400,
            call("notification-1", {.method = "PUT", .path = "/preferences/ann", .body = deep}));
  }
}

TEST_F(BadRequest, another_content_type_is_415) {
  const std::string good = a_document().dump();
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                           "multipart/form-data", "application/xml", "json", "", ";",
                           "application/json, text/plain"}) {
    refused(415, send(good, {"Content-Type: " + std::string(type)}));
  }
  refused(415, send(good, {}));
  refused(415, send(good, {kJson, "Content-Encoding: gzip"}));
  refused(400, send(good, {kJson, "Content-Type: text/plain"}), "Content-Type");
  refused(415, call("notification-1", {.method = "PUT",
                                       .path = "/preferences/ann",
                                       .body = R"({"email": false})",
                                       .headers = {"Content-Type: text/plain"}}));
}

TEST_F(BadRequest, a_body_of_10_mb_is_413) {
  const std::string large(10 << 20, 'x');
  refused(413, send(large));
  refused(413, call("ingestion-1", {.path = "/nowhere", .body = large}));
  refused(413,
          call("notification-1", {.method = "PUT", .path = "/preferences/ann", .body = large}));
  refused(413, raw(head("Content-Length: 99999999999\r\n\r\n")));
  std::string chunks;
  for (int i = 0; i < 48; ++i) chunks += "10000\r\n" + std::string(1 << 16, 'x') + "\r\n";
  refused(413, raw(head("Transfer-Encoding: chunked\r\n\r\n") + chunks + "0\r\n\r\n"));
}

TEST_F(BadRequest, a_wrong_field_is_422_and_named) {
  const std::string long_text(256, 'x');
  const std::vector<std::pair<json, std::string>> rows = {
      {without("title"), "/title"},
      {without("contentType"), "/contentType"},
      {without("owner"), "/owner"},
      {without("content"), "/content"},
      {json::object(), "/title"},
      {with("title", 7), "/title"},
      {with("title", nullptr), "/title"},
      {with("title", json::array({"x"})), "/title"},
      {with("title", true), "/title"},
      {with("title", long_text), "/title"},
      {with("title", "a\r\nSet-Cookie: b"), "/title"},
      {with("title", std::string("a\0b", 3)), "/title"},
      {with("title", "\x7f"), "/title"},
      {with("contentType", long_text), "/contentType"},
      {with("contentType", 1.5), "/contentType"},
      {with("owner", ""), "/owner"},
      {with("owner", long_text), "/owner"},
      {with("owner", "a\tb"), "/owner"},
      {with("content", json::object()), "/content"},
      {with("content", std::string((256 << 10) + 1, 'x')), "/content"},
      {with("content", "\x1b[2J"), "/content"},
      {with("contentUrl", "https://example.org/"), "/content"},
      {with("metadata", json::array()), "/metadata"},
      {with("metadata", "x"), "/metadata"},
      {with("metadata", {{"", "x"}}), "/metadata"},
      {with("metadata", {{"a\nb", "x"}}), "/metadata"},
      {with("metadata", {{"a", nullptr}}), "/metadata/a"},
      {with("metadata", {{"a/b~c", {{"d", 1}}}}), "/metadata/a~1b~0c"},
      {with("metadata", {{"a", std::string(9'000, 'x')}}), "/metadata"},
      {with("status", "ENRICHED"), "/status"},
      {with("id", make_event_id()), "/id"},
      {with("__proto__", 1), "/__proto__"},
      {with("Title", "x"), "/Title"},
  };
  for (const auto& [document, field] : rows) refused(422, post(document), field);
  json by_url = without("content");
  by_url["contentUrl"] = "";
  refused(422, post(by_url), "/contentUrl");
  by_url["contentUrl"] = "https://example.org/" + std::string(2'048, 'x');
  refused(422, post(by_url), "/contentUrl");
  by_url["contentUrl"] = json::array();
  refused(422, post(by_url), "/contentUrl");
}

TEST_F(BadRequest, of_ten_thousand_wrong_fields_the_first_are_named) {
  json document = a_document();
  for (int i = 0; i < 10'000; ++i) document["wrong" + std::to_string(i)] = std::string(10, 'x');
  document[std::string(100'000, 'y')] = 1;
  const auto answer = post(document);
  EXPECT_EQ(refused(422, answer).at("errors").size(), 20U);
  EXPECT_LT(answer.body.size(), 10'000U);
  json preferences;
  for (int i = 0; i < 10'000; ++i) preferences["wrong" + std::to_string(i)] = 1;
  const auto other = call(
      "notification-1", {.method = "PUT", .path = "/preferences/ann", .body = preferences.dump()});
  EXPECT_EQ(refused(422, other).at("errors").size(), 20U);
}

TEST_F(BadRequest, preferences_of_other_channels_or_types_are_422) {
  const auto set = [](const std::string& user, const std::string& body) {
    return call("notification-1", {.method = "PUT", .path = "/preferences/" + user, .body = body});
  };
  refused(422, set("ann", R"({"email": true, "fax": true})"), "/fax");
  refused(422, set("ann", R"({"email": "yes"})"), "/email");
  refused(422, set("ann", R"({"email": 1, "sms": null})"), "/sms");
  refused(400, set("ann", "[]"));
  refused(400, set("ann", ""));
  refused(400, set(std::string(256, 'u'), R"({"email": true})"), "user");
  refused(400, get("notification-1", "/preferences/" + std::string(256, 'u')), "user");
  refused(404, set("", R"({"email": true})"));
}

TEST_F(BadRequest, an_idempotency_key_has_1_to_255_visible_characters_and_is_there_once) {
  for (const std::string& key : {std::string(256, 'k'), std::string("two words"), std::string(),
                                 std::string("caf\xc3\xa9"), std::string("tab\tkey")}) {
    refused(400, post(a_document(), {"Idempotency-Key: " + key}), "Idempotency-Key");
  }
  refused(400, post(a_document(), {"Idempotency-Key: one", "Idempotency-Key: two"}),
          "Idempotency-Key");
  refused(400, post(a_document(), {"Idempotency-Key: one", "Idempotency-Key: one"}),
          "Idempotency-Key");
}

TEST_F(BadRequest, headers_that_would_begin_others_are_400) {
  const std::string body = a_document().dump();
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  refused(400, raw(head("X-Correlation-Id: a\rSet-Cookie: b\r\n" + length)));
  refused(400, raw(head("X-Correlation-Id: a\x01z\r\n" + length)));
  refused(400, raw(head(std::string("Idempotency-Key: a\0b\r\n", 22) + length)));
  refused(400, raw(head("Idempotency-Key : a\r\n" + length)));
  refused(400, raw(head("No colon\r\n" + length)));
  refused(400, raw(head("Host: other\r\n" + length)));
  refused(400, raw(head("Content-Length: 5\r\n" + length)));
  refused(400, raw(head("Transfer-Encoding: chunked\r\n" + length)));
  refused(417, raw(head("Expect: something\r\n" + length)));
  refused(431, raw(head("X-Large: " + std::string(17'000, 'x') + "\r\n" + length)));
  refused(403, post(a_document(), {"Origin: http://evil.example"}));
}

TEST_F(BadRequest, a_method_that_a_path_does_not_take_is_405_with_those_it_takes) {
  const auto allowed = [](const std::string& instance, const std::string& method,
                          const std::string& path) {
    const auto answer = call(instance, {.method = method, .path = path, .headers = {}});
    EXPECT_EQ(answer.status, 405) << method << " " << path;
    const auto allow = answer.headers.find("allow");
    return allow == answer.headers.end() ? "" : allow->second;
  };
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "FOO"}) {
    EXPECT_EQ(allowed("ingestion-1", method, "/documents"), "GET, HEAD, POST");
    EXPECT_EQ(allowed("ingestion-1", method, "/documents/" + make_event_id()), "GET, HEAD");
    EXPECT_EQ(allowed("audit-1", method, "/audit"), "GET, HEAD");
  }
  EXPECT_EQ(allowed("ingestion-1", "get", "/documents"), "GET, HEAD, POST") << "case counts";
  EXPECT_EQ(allowed("notification-1", "POST", "/preferences/ann"), "GET, HEAD, PUT");
  EXPECT_EQ(allowed("validation-1", "POST", "/healthz"), "GET, HEAD");
}

TEST_F(BadRequest, a_path_that_is_not_there_is_404) {
  for (const char* path :
       {"/", "/nowhere", "/documents/", "//documents", "/documents/a/b", "/DOCUMENTS", "/audit",
        "/documents/%2e%2e", "/documents/..", "/documents/../../etc/passwd", "/%64ocument"}) {
    refused(404, get("ingestion-1", path));
  }
  refused(404, get("audit-1", "/documents"));
}

TEST_F(BadRequest, a_path_that_cannot_be_read_is_400) {
  for (const std::string& path :
       {std::string("/documents/%"), std::string("/documents/%zz"), std::string("/documents/%00"),
        std::string("/documents/%0d%0aSet-Cookie:%20a"), std::string("/documents/%ff"),
        std::string("/documents?owner=%0d%0a"), std::string("/documents?owner=%c3"),
        std::string("/documents?owner=%00"), std::string("/documents#x")}) {
    refused(400, get("ingestion-1", path));
  }
  std::string many = "/documents?";
  for (int i = 0; i < 100; ++i) many += "owner=a&";
  refused(400, get("ingestion-1", many));
  refused(431, raw("GET /documents?owner=" + std::string(20'000, 'x') +
                       " HTTP/1.1\r\nHost: localhost\r\n\r\n",
                   "GET"));
}

TEST_F(BadRequest, a_query_parameter_that_cannot_be_used_is_400_and_named) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> lists = {
      {"ingestion-1", {"/documents"}},
      {"audit-1", {"/audit"}},
      {"notification-1", {"/notifications"}}};
  for (const auto& [instance, paths] : lists) {
    for (const std::string& path : paths) {
      for (const char* limit : {"0", "-1", "201", "1.5", "1e2", "x", "", "99999999999999999999",
                                "%2B5", "%205", "0x10", "5;DROP TABLE documents"}) {
        refused(400, get(instance, path + "?limit=" + core::percent_encoded(limit)), "limit");
      }
      for (const char* cursor :
           {"", "x", "-1", "1.5", "9223372036854775808", "1 OR 1=1", "' OR '1'='1",
            "00000000-0000-0000-0000-00000000000", "00000000-0000-0000-0000-00000000000G",
            "AAAAAAAA-0000-0000-0000-000000000000", "{}", "%", "eyJpZCI6MX0="}) {
        refused(400, get(instance, path + "?cursor=" + core::percent_encoded(cursor)), "cursor");
      }
      refused(400, get(instance, path + "?limit=1&limit=2"), "limit");
      refused(400, get(instance, path + "?correlationId=a&correlationId=b"), "correlationId");
      refused(400, get(instance, path + "?nothing=1"), "nothing");
      refused(400, get(instance, path + "?LIMIT=1"), "LIMIT");
      refused(400, get(instance, path + "?=1"));
      refused(400, get(instance, path + "?correlationId="), "correlationId");
      refused(400, get(instance, path + "?correlationId=" + std::string(256, 'x')),
              "correlationId");
    }
  }
  for (const char* status : {"enriched", "LOST", "ENRICHED'--", "ENRICHED,FAILED"}) {
    refused(400, get("ingestion-1", "/documents?status=" + core::percent_encoded(status)),
            "status");
  }
  refused(400, get("notification-1", "/notifications?channel=fax"), "channel");
  for (const char* time :
       {"now", "2026", "2026-11-18", "2026-13-18T00:00:00.000Z", "2026-02-30T00:00:00.000Z",
        "0000-01-01T00:00:00.000Z", "2026-11-18T24:00:00.000Z", "2026-11-18T00:00:00Z",
        "2026-11-18T00:00:00.000+01:00", "-infinity", "2026-11-18T00:00:00.000Z'--"}) {
    refused(400, get("audit-1", "/audit?from=" + core::percent_encoded(time)), "from");
    refused(400, get("audit-1", "/audit?to=" + core::percent_encoded(time)), "to");
  }
}

TEST_F(BadRequest, a_forged_cursor_shows_a_page_and_nothing_else) {
  for (const char* cursor :
       {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"}) {
    EXPECT_EQ(get("ingestion-1", "/documents?cursor=" + std::string(cursor)).status, 200);
  }
  for (const char* cursor : {"0", "9223372036854775807", "000000001"}) {
    EXPECT_EQ(get("audit-1", "/audit?cursor=" + std::string(cursor)).status, 200);
    EXPECT_EQ(get("notification-1", "/notifications?cursor=" + std::string(cursor)).status, 200);
  }
}

const std::vector<std::string> kInjections = {"'; DROP TABLE documents; --",
                                              "' OR '1'='1",
                                              "\"; DELETE FROM documents; --",
                                              "x'); DELETE FROM idempotency_keys; --",
                                              "$1",
                                              "$$; SELECT 1; $$",
                                              "\\'; SELECT 1; --",
                                              "%' OR 1=1 --",
                                              "?1",
                                              ":owner",
                                              "/* */ UNION SELECT 1",
                                              "%s%n%x",
                                              "{{7*7}}",
                                              "${jndi:x}",
                                              "<script>alert(1)</script>",
                                              "../../etc/passwd"};

TEST_F(BadRequest, sql_in_a_query_or_path_finds_nothing_and_changes_nothing) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"ingestion-1", "/documents?owner="},
      {"ingestion-1", "/documents?correlationId="},
      {"audit-1", "/audit?documentId="},
      {"audit-1", "/audit?correlationId="},
      {"audit-1", "/audit?eventType="},
      {"notification-1", "/notifications?documentId="},
      {"notification-1", "/notifications?userId="},
      {"notification-1", "/notifications?correlationId="}};
  for (const std::string& injection : kInjections) {
    for (const auto& [instance, path] : texts) {
      EXPECT_TRUE(
          got(instance, path + core::percent_encoded("nobody" + injection)).at("items").empty());
    }
    refused(404, get("ingestion-1", "/documents/" + core::percent_encoded(injection)));
    EXPECT_TRUE(
        got("notification-1", "/preferences/" + core::percent_encoded(injection)).at("email"));
  }
}

// What is text to us is text to the database.
TEST_F(DocumentsApi, sql_in_a_text_is_stored_and_found_as_it_is) {
  for (const std::string& injection : kInjections) {
    json document = a_document(injection);
    document["owner"] = injection;
    document["content"] = injection;
    document["contentType"] = injection;
    document["metadata"] = {{injection, injection}};
    std::string key = injection;
    key.erase(std::remove(key.begin(), key.end(), ' '), key.end());
    const auto answer = post(document, {"Idempotency-Key: " + key, "X-Correlation-Id: " + key});
    ASSERT_EQ(answer.status, 201) << answer.body;
    const json read = got("ingestion-1", answer.headers.at("location"));
    for (const char* field : {"title", "owner", "contentType", "metadata"}) {
      EXPECT_EQ(read.at(field), document.at(field));
    }
    EXPECT_EQ(got("ingestion-1", "/documents?owner=" + core::percent_encoded(injection))
                  .at("items")
                  .size(),
              1U);
    EXPECT_EQ(post(document, {"Idempotency-Key: " + key}).body, answer.body);
    const std::string user = "/preferences/" + core::percent_encoded(injection);
    EXPECT_EQ(
        call("notification-1", {.method = "PUT", .path = user, .body = R"({"sms": false})"}).status,
        200);
    EXPECT_FALSE(got("notification-1", user).at("sms"));
  }
}

TEST_F(DocumentsApi, content_of_256_kib_is_taken_however_it_is_escaped) {
  for (const char c : {'x', '"', '\n'}) {
    json document = a_document();
    document["content"] = std::string(256 << 10, c);
    document["metadata"] = {{"large", std::string(8'000, '"' == c ? 'y' : 'z')}};
    const auto answer = post(document);
    EXPECT_EQ(answer.status, 201) << answer.body;
  }
}

TEST_F(DocumentsApi, json_may_be_said_in_other_words) {
  const std::string body = a_document().dump();
  for (const char* type : {"application/json; charset=utf-8", "Application/JSON",
                           "application/json ;charset=UTF-8", "application/json;"}) {
    const auto answer =
        call("ingestion-1", {.body = body, .headers = {"Content-Type: " + std::string(type)}});
    EXPECT_EQ(answer.status, 201) << type << ": " << answer.body;
  }
}

}  // namespace
}  // namespace baton::test
