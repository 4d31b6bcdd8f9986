#pragma once

// The OpenAPI document of a service, and whether an answer is as it says.

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/http_client.h"
#include "support/json_schema.h"

namespace baton::test {

class DescribedApi {
 public:
  explicit DescribedApi(nlohmann::json document) : document_(std::move(document)) {}

  [[nodiscard]] const nlohmann::json& document() const { return document_; }

  // "GET /documents/{id}" of each.
  [[nodiscard]] std::set<std::string> operations() const {
    std::set<std::string> all;
    for (const auto& [path, item] : document_.at("paths").items()) {
      for (const auto& [method, operation] : item.items()) all.insert(upper(method) + " " + path);
    }
    return all;
  }

  // What is wrong with an answer to METHOD PATH, a line each. `sent` is the body of the request.
  [[nodiscard]] std::vector<std::string> violations(const std::string& method,
                                                    const std::string& path,
                                                    const std::string& sent,
                                                    const HttpAnswer& answer) const {
    const auto* item = find_path(path.substr(0, path.find('?')));
    // Methods are told apart by case.
    const std::string wanted = method == "HEAD"          ? "get"
                               : method == upper(method) ? lower(method)
                                                         : "";
    if (item == nullptr || !item->contains(wanted)) return undescribed(item, answer);
    const auto& operation = item->at(wanted);
    const auto described = operation.at("responses").find(std::to_string(answer.status));
    if (described == operation.at("responses").end()) {
      return {"the status " + std::to_string(answer.status) + " is not described"};
    }
    std::vector<std::string> wrong;
    check_headers(resolve(document_, *described), answer, wrong);
    if (method != "HEAD") check_body(resolve(document_, *described), answer, wrong);
    if (answer.status < 300 && operation.contains("requestBody")) {
      const auto& schema =
          resolve(document_, operation.at("requestBody")).at("content").at("application/json");
      for (auto& one : schema_violations(document_, schema.at("schema"),
                                         nlohmann::json::parse(sent, nullptr, false))) {
        wrong.push_back("taken, but the request " + one);
      }
    }
    return wrong;
  }

 private:
  static std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), ::toupper);
    return text;
  }
  static std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), ::tolower);
    return text;
  }
  static std::vector<std::string> split(const std::string& path) {
    std::vector<std::string> parts;
    std::string::size_type begin = 0;
    for (;;) {
      const auto end = path.find('/', begin);
      parts.push_back(path.substr(begin, end - begin));
      if (end == std::string::npos) return parts;
      begin = end + 1;
    }
  }

  [[nodiscard]] const nlohmann::json* find_path(const std::string& path) const {
    const auto asked = split(path);
    for (const auto& [pattern, item] : document_.at("paths").items()) {
      const auto parts = split(pattern);
      const bool same =
          parts.size() == asked.size() &&
          std::equal(parts.begin(), parts.end(), asked.begin(), [](const auto& a, const auto& b) {
            return a == b || (a.starts_with('{') && !b.empty());
          });
      if (same) return &item;
    }
    return nullptr;
  }

  // No such path or method: what the server says by itself, always a problem.
  [[nodiscard]] std::vector<std::string> undescribed(const nlohmann::json* item,
                                                     const HttpAnswer& answer) const {
    const std::set<int> server = {400, 408, 413, 417, 431, 503};
    std::vector<std::string> wrong;
    if (answer.status != (item == nullptr ? 404 : 405) && !server.contains(answer.status)) {
      wrong.push_back("answered " + std::to_string(answer.status) + ", but is not described");
    }
    if (answer.status == 405 && !answer.headers.contains("allow")) wrong.push_back("has no Allow");
    check_body({{"content",
                 {{"application/problem+json",
                   {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}},
               answer, wrong);
    return wrong;
  }

  void check_headers(const nlohmann::json& response, const HttpAnswer& answer,
                     std::vector<std::string>& wrong) const {
    const std::set<std::string> every = {"content-type", "content-length", "cache-control",
                                         "x-content-type-options", "connection"};
    std::set<std::string> described;
    const auto headers = response.value("headers", nlohmann::json::object());
    for (const auto& [name, reference] : headers.items()) {
      const auto& header = resolve(document_, reference);
      described.insert(lower(name));
      const auto found = answer.headers.find(lower(name));
      if (found == answer.headers.end()) {
        if (header.value("required", false)) wrong.push_back("has no " + name);
        continue;
      }
      for (auto& one : schema_violations(document_, header.at("schema"), found->second)) {
        wrong.push_back(name + one);
      }
    }
    for (const auto& [name, value] : answer.headers) {
      if (!every.contains(name) && !described.contains(name)) {
        wrong.push_back("the header " + name + " is not described");
      }
    }
  }

  void check_body(const nlohmann::json& response, const HttpAnswer& answer,
                  std::vector<std::string>& wrong) const {
    const auto header = answer.headers.find("content-type");
    const std::string type =
        header == answer.headers.end() ? "" : header->second.substr(0, header->second.find(';'));
    const auto& content = response.at("content");
    if (!content.contains(type)) {
      wrong.push_back("the content type " + type + " is not described");
      return;
    }
    const bool text = type.starts_with("text/");
    const auto body =
        text ? nlohmann::json(answer.body) : nlohmann::json::parse(answer.body, nullptr, false);
    for (auto& one : schema_violations(document_, content.at(type).at("schema"), body)) {
      wrong.push_back("the body " + one);
    }
    if (type == "application/problem+json" && body.is_object() &&
        body.value("status", 0) != answer.status) {
      wrong.push_back("the problem has another status than the answer");
    }
  }

  nlohmann::json document_;
};

}  // namespace baton::test
