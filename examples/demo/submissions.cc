#include "submissions.h"

#include <array>
#include <chrono>

#include "http_client/http_client.h"
#include "json/json.h"

namespace demo {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kInterval = 45ms;  // between documents
constexpr auto kAgainAfter = 50ms;
constexpr auto kAnswerWithin = 5s;

struct Sample {
  const char* title;
  const char* text;
};
constexpr std::array<Sample, 5> kSamples = {{
    {"Invoice", "This is the invoice for the goods that you ordered. Total amount: 120 EUR."},
    {"Contract", "This agreement is a contract between the two parties that signed it below."},
    {"Report", "A summary of the results, with an analysis of what they mean for the business."},
    {"Letter", "Dear Bob, this is the letter that you asked for. Sincerely yours, Ann."},
    {"Brief", "Dies ist der Brief, und das ist nicht die Rechnung: die kommt mit der Ware."},
}};
constexpr std::array<const char*, 4> kOwners = {"ann", "bob", "cleo", "dan"};

void make_invalid(json& document, int number) {
  switch (number / 10 % 4) {
    case 0: document["content"] = "Open this malware, please."; break;
    case 1: document["title"] = "  "; break;
    case 2: document["contentType"] = "image/png"; break;
    default: document["contentType"] = "application/json"; document["content"] = "{\"total\": ";
  }
}

json document_of(int number) {
  const auto index = static_cast<std::size_t>(number);
  const Sample& sample = kSamples[index % kSamples.size()];
  json document = {{"title", sample.title + (" " + std::to_string(number))},
                   {"contentType", "text/plain"},
                   {"owner", kOwners[index % kOwners.size()]},
                   {"content", sample.text}};
  switch (kind_of(number)) {
    case Kind::good: break;
    case Kind::flaky: document["metadata"] = {{"simulate", "flaky"}}; break;
    case Kind::invalid: make_invalid(document, number); break;
    case Kind::poison_for_validation:
      document["metadata"] = {{"simulate", "poison"}, {"simulateAt", "validation"}};
      break;
    case Kind::poison_for_enrichment: document["metadata"] = {{"simulate", "poison"}}; break;
  }
  return document;
}

}  // namespace

Kind kind_of(int number) {
  if (number % 10 == 3) return Kind::invalid;
  if (number % 20 == 15) return Kind::flaky;
  if (number % 20 != 5) return Kind::good;
  return number % 60 == 45 ? Kind::poison_for_validation : Kind::poison_for_enrichment;
}

std::string correlation_id_of(int number) { return "demo-" + std::to_string(number); }

Submitter::Submitter(int count, Urls urls)
    : count_(count),
      urls_(std::move(urls)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Submitter::run(const std::stop_token& stop) {
  auto next = std::chrono::steady_clock::now();
  for (int number = 1; number <= count_ && submit(number, stop); ++number) {
    next += kInterval;
    std::this_thread::sleep_until(next);
  }
  ended_ = true;
}

bool Submitter::submit(int number, const std::stop_token& stop) {
  static baton::http_client::HttpClient http;
  const std::string name = correlation_id_of(number);
  for (std::size_t attempt = 0; !stop.stop_requested(); ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kAgainAfter);
    const auto urls = urls_();
    if (urls.empty()) continue;
    const auto answer = http.send(
        {.method = "POST",
         .url = urls[(static_cast<std::size_t>(number) + attempt) % urls.size()] + "/documents",
         .headers = {{"Content-Type", "application/json"},
                     {"Idempotency-Key", name},
                     {"X-Correlation-Id", name}},
         .body = document_of(number).dump()},
        baton::BootClock::now() + kAnswerWithin);
    if (answer && answer->status == 201) {
      const json body = baton::parse_json(answer->body);
      documents_.push_back({.number = number, .kind = kind_of(number), .id = body.value("id", "")});
      ++submitted_;
      return true;
    }
    if (answer && answer->status < 500 && answer->status != 409) {
      trouble_ = name + " was answered " + std::to_string(answer->status) + ": " + answer->body;
      return false;
    }
    ++repeated_;
  }
  return false;
}

}  // namespace demo
