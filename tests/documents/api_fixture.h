#pragma once

// One platform for all cases of a program, asked by a client that holds every answer against the
// OpenAPI document of the service.

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "described_api.h"
#include "platform.h"

namespace baton::test {

class DocumentsApi : public testing::Test {
 protected:
  static Platform& platform() {
    static const int set = ::setenv("DOCUMENTS_MAX_LAG", "1s", 1);  // its least
    static Platform started("ingestion=2");
    (void)set;
    return started;
  }

  // Fails the test if the answer is not as described. Status 0: none came.
  static HttpAnswer call(const std::string& instance, const Call& asked) {
    return read(instance, asked, ask(platform().port(instance), asked));
  }
  static HttpAnswer get(const std::string& instance, const std::string& path) {
    return call(instance, {.method = "GET", .path = path, .headers = {}});
  }
  static nlohmann::json got(const std::string& instance, const std::string& path) {
    const auto answer = get(instance, path);
    EXPECT_EQ(answer.status, 200) << path << ": " << answer.body;
    return nlohmann::json::parse(answer.body, nullptr, false);
  }
  static HttpAnswer post(const nlohmann::json& document, std::vector<std::string> headers = {},
                         const std::string& instance = "ingestion-1") {
    headers.insert(headers.begin(), "Content-Type: application/json");
    return call(instance, {.body = document.dump(), .headers = std::move(headers)});
  }
  static HttpAnswer read(const std::string& instance, const Call& asked,
                         const std::optional<HttpAnswer>& answer) {
    if (!answer) {
      ADD_FAILURE() << "no answer to " << asked.method << " " << asked.path.substr(0, 200);
      return {};
    }
    for (const std::string& wrong :
         api(instance).violations(asked.method, asked.path, asked.body, *answer)) {
      ADD_FAILURE() << asked.method << " " << asked.path.substr(0, 200) << " -> " << answer->status
                    << ": " << wrong << "\n"
                    << answer->body.substr(0, 1'000);
    }
    return *answer;
  }

  static std::int64_t rows(const std::string& service, const std::string& sql,
                           const sql::Values& values = {}) {
    return platform().database(service)->query(sql, values).value().front().integer(0);
  }

 private:
  static const DescribedApi& api(const std::string& instance) {
    const std::string service = instance.substr(0, instance.find('-'));
    const auto known = apis_.find(service);
    if (known != apis_.end()) return known->second;
    const auto document =
        ask(platform().port(instance), {.method = "GET", .path = "/openapi.json"});
    return apis_
        .emplace(service, nlohmann::json::parse(document ? document->body : std::string("{}")))
        .first->second;
  }

  static inline std::map<std::string, DescribedApi> apis_;
};

}  // namespace baton::test
