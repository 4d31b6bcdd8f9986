// The OpenAPI documents, without a server: they are well formed and describe the routes, and the
// checks of the tests find what is not as they say.

#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "apps/documents/common/api_document.h"
#include "apps/documents/common/health.h"
#include "apps/documents/common/topology.h"
#include "apps/documents/services.h"
#include "described_api.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using documents::Health;
using documents::Settings;
using nlohmann::json;

// A service that has been made and not started. Its database is opened when somebody asks it.
class Made {
 public:
  explicit Made(const std::string& service, const std::string& database = "",
                const Topology& topology = {})
      : settings_{.service = service,
                  .database = database.empty() ? "sqlite:" + (directory_ / "service.db").string()
                                               : database},
        database_(settings_.database, {.name = service}),
        broker_(Broker::open("embedded:" + (directory_ / "broker.db").string()).value()) {
    if (!topology.queues.empty()) {
      EXPECT_TRUE(broker_->declare(topology, BootClock::now() + patience));
    }
    const documents::ServiceContext context{settings_, database_, log_, metrics_};
    const auto spec = documents::find_service(service)->make(context);
    health_.emplace(settings_, database_, *broker_, nullptr, spec.queue);
    router_ = documents::make_router(spec, context, *health_);
  }

  [[nodiscard]] const http::Router& router() const { return router_; }
  [[nodiscard]] http::Response get(const std::string& path) const {
    http::Response answer;
    const auto match = router_.find("GET", *http::parse_target(path));
    (*match.handler)({.method = "GET", .path = path},
                     http::Reply([&](http::Response given) { answer = std::move(given); }));
    return answer;
  }

 private:
  TempDir directory_{"made"};
  Settings settings_;
  observe::Log log_{{.file = 2}};
  observe::Metrics metrics_;
  sql::Pool database_;
  std::shared_ptr<Broker> broker_;
  std::optional<Health> health_;
  http::Router router_;
};

class ApiDocument : public testing::TestWithParam<const char*> {
 protected:
  Made service{GetParam()};
  DescribedApi api{json::parse(service.get("/openapi.json").body)};
};
INSTANTIATE_TEST_SUITE_P(services, ApiDocument,
                         testing::Values("ingestion", "validation", "enrichment", "audit",
                                         "notification"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(ApiDocument, describes_every_route_and_no_other) {
  std::set<std::string> routes;
  for (const auto& [method, pattern] : service.router().routes()) {
    routes.insert(method + " " + pattern);
  }
  EXPECT_EQ(api.operations(), routes);
}

// Calls `visit` with every object in a document.
void visit_all(const json& node, const std::function<void(const json&)>& visit) {
  if (node.is_object()) visit(node);
  if (!node.is_structured()) return;
  for (const auto& child : node) visit_all(child, visit);
}

TEST_P(ApiDocument, is_well_formed) {
  const json& document = api.document();
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  EXPECT_EQ(document.at("info").at("title"), std::string("documents ") + GetParam());
  EXPECT_FALSE(document.at("info").at("version").get<std::string>().empty());
  for (const auto& [name, member] : document.items()) {
    EXPECT_TRUE(std::set<std::string>({"openapi", "info", "paths", "components"}).contains(name))
        << name;
  }
  visit_all(document, [&](const json& node) {
    if (node.contains("$ref")) {
      EXPECT_NO_THROW((void)resolve(document, node)) << node;
    }
    // Throws for a word that nobody checks.
    if (node.contains("schema")) {
      EXPECT_NO_THROW((void)schema_violations(document, node.at("schema"), json())) << node;
    }
  });
  for (const auto& [name, schema] : document.at("components").at("schemas").items()) {
    EXPECT_NO_THROW((void)schema_violations(document, schema, json::object())) << name;
  }
}

TEST_P(ApiDocument, says_of_each_operation_what_a_client_needs) {
  const json& document = api.document();
  std::set<std::string> ids;
  for (const auto& [path, item] : document.at("paths").items()) {
    for (const auto& [method, operation] : item.items()) {
      EXPECT_TRUE(ids.insert(operation.at("operationId").get<std::string>()).second) << path;
      EXPECT_FALSE(operation.at("summary").get<std::string>().empty()) << path;
      for (const auto& [status, response] : operation.at("responses").items()) {
        EXPECT_FALSE(resolve(document, response).at("description").get<std::string>().empty());
      }
      std::set<std::string> in_path;
      for (const auto& reference : operation.value("parameters", json::array())) {
        const json& parameter = resolve(document, reference);
        EXPECT_TRUE(parameter.contains("schema")) << parameter;
        if (parameter.at("in") == "path") {
          EXPECT_TRUE(parameter.at("required")) << path;
          in_path.insert("{" + parameter.at("name").get<std::string>() + "}");
        }
      }
      for (const std::string& name : in_path) EXPECT_NE(path.find(name), std::string::npos) << path;
      EXPECT_EQ(static_cast<std::ptrdiff_t>(in_path.size()),
                std::count(path.begin(), path.end(), '{'))
          << path;
    }
  }
}

TEST(ApiDocumentOfAService, without_routes_of_its_own_has_those_of_all) {
  const auto document = json::parse(documents::api_document("sixth", ""));
  EXPECT_EQ(
      DescribedApi(document).operations(),
      (std::set<std::string>{"GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json"}));
}

TEST(Readiness, says_that_the_queue_is_missing) {
  const Made service("validation");
  const auto answer = service.get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(json::parse(answer.body).at("reasons").dump().find("document.uploaded.q"),
            std::string::npos)
      << answer.body;
}

TEST(Readiness, says_that_the_database_does_not_answer_and_no_password) {
  const Made service("validation", "postgres://ann:s3cr3t@127.0.0.1:1/x",
                     documents::documents_topology());
  const auto answer = service.get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(json::parse(answer.body).at("reasons"), json({"the database does not answer"}));
  EXPECT_EQ(answer.body.find("s3cr3t"), std::string::npos);
}

TEST(Readiness, is_there_with_database_and_broker) {
  const Made service("validation", "", documents::documents_topology());
  const auto answer = service.get("/readyz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body).at("reasons"), json::array());
}

// The checks themselves: each of these must be found.

TEST(JsonSchema, finds_what_does_not_fit) {
  const auto finds = [](const char* schema, const char* value) {
    return !schema_violations(json::object(), json::parse(schema), json::parse(value)).empty();
  };
  EXPECT_TRUE(finds(R"({"type": "string"})", "7"));
  EXPECT_FALSE(finds(R"({"type": ["string", "number"]})", "7"));
  EXPECT_TRUE(finds(R"({"type": "integer"})", "7.5"));
  EXPECT_FALSE(finds(R"({"type": "integer"})", "7.0"));
  EXPECT_TRUE(finds(R"({"const": "a"})", R"("b")"));
  EXPECT_TRUE(finds(R"({"enum": ["a", "b"]})", R"("c")"));
  EXPECT_TRUE(finds(R"({"properties": {"a": {"type": "null"}}})", R"({"a": 1})"));
  EXPECT_TRUE(finds(R"({"required": ["a"]})", "{}"));
  EXPECT_TRUE(finds(R"({"properties": {}, "additionalProperties": false})", R"({"a": 1})"));
  EXPECT_TRUE(finds(R"({"additionalProperties": {"type": "string"}})", R"({"a": 1})"));
  EXPECT_FALSE(finds(R"({"additionalProperties": {"type": "string"}})", R"({"a": "1"})"));
  EXPECT_TRUE(finds(R"({"items": {"type": "string"}})", R"(["a", 1])"));
  EXPECT_TRUE(
      finds(R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})", R"({"a": 1, "b": 2})"));
  EXPECT_FALSE(finds(R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})", R"({"a": 1})"));
  EXPECT_TRUE(finds(R"({"minLength": 1})", R"("")"));
  EXPECT_TRUE(finds(R"({"maxLength": 1})", R"("ab")"));
  EXPECT_FALSE(finds(R"({"maxLength": 1})", R"("ä")"));
  EXPECT_TRUE(finds(R"({"pattern": "^a+$"})", R"("ab")"));
  EXPECT_TRUE(finds(R"({"minimum": 1})", "0"));
  EXPECT_TRUE(finds(R"({"maximum": 1})", "2"));
  EXPECT_TRUE(finds(R"({"minItems": 1})", "[]"));
  EXPECT_TRUE(finds(R"({"maxItems": 1})", "[1, 2]"));
  EXPECT_THROW(finds(R"({"uniqueItems": true})", "[]"), std::invalid_argument);
  EXPECT_THROW(finds(R"({"type": "text"})", "[]"), std::invalid_argument);
}

TEST(DescribedAnswers, are_found_wrong_when_they_are_not_as_described) {
  const DescribedApi api(json::parse(documents::api_document("sixth", "")));
  const HttpAnswer good{.status = 200,
                        .headers = {{"content-type", "application/json"}},
                        .body = R"({"status":"alive"})"};
  EXPECT_TRUE(api.violations("GET", "/healthz", "", good).empty());
  const auto found = [&](const std::function<void(HttpAnswer&)>& change) {
    HttpAnswer answer = good;
    change(answer);
    return !api.violations("GET", "/healthz", "", answer).empty();
  };
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.status = 204; }));
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.status = 404; }));
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.body = "{}"; }));
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.body = "alive"; }));
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.headers["content-type"] = "text/html"; }));
  EXPECT_TRUE(found([](HttpAnswer& answer) { answer.headers["set-cookie"] = "a=b"; }));
  EXPECT_FALSE(api.violations("GET", "/nowhere", "", good).empty());
  EXPECT_FALSE(api.violations("POST", "/healthz", "", good).empty());
}

}  // namespace
}  // namespace baton::test
