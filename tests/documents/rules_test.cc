// The parts of the services that are pure functions.

#include <set>

#include <gtest/gtest.h>

#include "apps/documents/audit/chain.h"
#include "apps/documents/enrichment/enrich.h"
#include "apps/documents/ingestion/status.h"
#include "apps/documents/ingestion/submission.h"
#include "apps/documents/setting_words.h"
#include "apps/documents/validation/rules.h"
#include "baton/consumer.h"

namespace baton::documents {
namespace {

using nlohmann::json;

json document() {
  return {{"title", "A letter"},
          {"contentType", "text/plain"},
          {"owner", "ann"},
          {"content", "Dear Bob"}};
}

std::vector<std::string> codes(const json& of) {
  std::vector<std::string> found;
  for (const auto& rule : validation::broken_rules(of)) found.push_back(rule.code);
  return found;
}

TEST(validation_rules, each_names_what_breaks_it_and_nothing_else) {
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes(document()), Codes{});
  const struct {
    const char* field;
    json value;
    const char* code;
  } cases[] = {
      {"title", "  ", "title-missing"},
      {"title", std::string(201, 'x'), "title-too-long"},
      {"owner", " ", "owner-missing"},
      {"contentType", "image/png", "content-type-unsupported"},
      {"content", " \n", "content-missing"},
      {"content", std::string(200 * 1024 + 1, 'x'), "content-too-large"},
      {"contentUrl", "http://example.org/a", "content-url-insecure"},
      {"content", "this is Confidential", "forbidden-word"},
  };
  for (const auto& [field, value, code] : cases) {
    json changed = document();
    changed[field] = value;
    EXPECT_EQ(codes(changed), Codes{code}) << field;
  }
  json data = document();
  data["contentType"] = "application/json; charset=utf-8";
  EXPECT_EQ(codes(data), Codes{"content-malformed"});
}

TEST(validation_rules, a_title_is_counted_in_characters) {
  json changed = document();
  std::string title;
  for (int i = 0; i < 200; ++i) title += "ä";
  changed["title"] = title;
  EXPECT_TRUE(validation::broken_rules(changed).empty());
}

TEST(enrichment, tells_class_language_words_keywords_and_checksum) {
  json invoice = document();
  invoice["title"] = "Invoice 7";
  invoice["content"] = "The payment of the amount is due, and the payment is for widgets.";
  const auto found = enrichment::enrich(invoice);
  EXPECT_EQ(found.classification, "invoice");
  EXPECT_EQ(found.language, "en");
  EXPECT_EQ(found.word_count, 13U);
  EXPECT_EQ(found.keywords, (std::vector<std::string>{"payment", "amount", "widgets"}));
  EXPECT_EQ(found.checksum.size(), 7 + 64U);
  EXPECT_EQ(found, enrichment::enrich(invoice));
}

TEST(document_status, is_the_highest_that_was_proved_in_any_order) {
  using ingestion::proved_by;
  const std::pair<std::string_view, std::string_view> events[] = {{"DocumentFailed", "validation"},
                                                                  {"DocumentValidated", ""},
                                                                  {"DocumentFailed", "enrichment"},
                                                                  {"DocumentEnriched", ""}};
  int rank = ingestion::kUploaded.rank;
  for (const auto& [type, stage] : events) {
    const auto proved = proved_by(type, stage);
    ASSERT_TRUE(proved);
    EXPECT_GT(proved->rank, rank);
    rank = proved->rank;
  }
  EXPECT_EQ(proved_by("DocumentRejected", "")->rank, proved_by("DocumentValidated", "")->rank);
  EXPECT_FALSE(proved_by("DocumentFailed", "audit"));
  EXPECT_FALSE(proved_by("DocumentUploaded", ""));
}

int status_of(const std::string& body) {
  const auto parsed = ingestion::parse_submission(body);
  const auto* refused = std::get_if<ingestion::Refused>(&parsed);
  return refused == nullptr ? 201 : refused->status;
}
int status_with(const char* field, const json& value) {
  json changed = document();
  changed[field] = value;
  return status_of(changed.dump());
}

TEST(submission, what_cannot_be_stored_is_refused) {
  EXPECT_EQ(status_of(document().dump()), 201);
  EXPECT_EQ(status_of("{"), 400);
  EXPECT_EQ(status_of("[]"), 400);
  EXPECT_EQ(status_of(std::string(100'000, '[')), 400);
  EXPECT_EQ(status_with("unknown", 1), 422);
  EXPECT_EQ(status_with("title", 7), 422);
  EXPECT_EQ(status_with("title", std::string(256, 'x')), 422);
  EXPECT_EQ(status_with("title", std::string("a\0b", 3)), 422);
  EXPECT_EQ(status_with("title", "a\r\nSet-Cookie: b"), 422);
  EXPECT_EQ(status_with("owner", ""), 422);
  EXPECT_EQ(status_with("contentUrl", "https://example.org/"), 422);  // and content
  EXPECT_EQ(status_with("content", std::string(ingestion::kMaxContent + 1, 'x')), 422);
  EXPECT_EQ(status_with("content", std::string(ingestion::kMaxContent, '"')), 201);
  EXPECT_EQ(status_with("metadata", json::array()), 422);
  EXPECT_EQ(status_with("metadata", {{"a", {{"b", 1}}}}), 422);
  EXPECT_EQ(status_with("metadata", {{"a", std::string(9'000, 'x')}}), 422);
  EXPECT_EQ(status_with("metadata", {{"a", "b"}, {"n", 1}, {"t", true}}), 201);
}

TEST(settings, a_consumer_tries_again_after_1_2_4_8_and_10_s) {
  SettingWords words;
  for (const SettingName& name : setting_names("validation")) words[name.name].text = name.fallback;
  const auto settings = understand("validation", words).value();
  EXPECT_EQ(settings.retry_delays, (std::vector<Millis>{Millis(1'000), Millis(2'000), Millis(4'000),
                                                        Millis(8'000), Millis(10'000)}));
  EXPECT_EQ(ConsumerOptions{}.max_retries, 5);
}

// As any other program would compute it: SHA-256 of the array without spaces.
TEST(audit_chain, a_seal_is_what_the_format_says) {
  const audit::AuditRow row{.id = 7,
                            .event_id = "e",
                            .event_type = "t",
                            .routing_key = "r",
                            .document_id = "d",
                            .correlation_id = "c",
                            .payload = "{}",
                            .occurred_at = "o",
                            .recorded_at = "p"};
  EXPECT_EQ(audit::seal({}, row).hash,
            "e04fd66aae332dcd84850099e7badfb1bad3da23f54bb58cd0a2f93bf2030792");
}

TEST(audit_chain, a_seal_depends_on_every_column_and_on_the_seal_before) {
  using audit::AuditRow;
  const AuditRow row{.id = 1, .event_id = "e", .event_type = "t", .payload = "{}"};
  const auto first = audit::seal({}, row);
  EXPECT_EQ(first.sequence, 1);
  std::set<std::string> hashes = {first.hash, audit::seal(first, row).hash};
  std::string AuditRow::*const columns[] = {
      &AuditRow::event_id,    &AuditRow::event_type,     &AuditRow::routing_key,
      &AuditRow::document_id, &AuditRow::correlation_id, &AuditRow::causation_id,
      &AuditRow::payload,     &AuditRow::occurred_at,    &AuditRow::recorded_at};
  for (const auto column : columns) {
    AuditRow changed = row;
    changed.*column += "x";
    hashes.insert(audit::seal({}, changed).hash);
  }
  AuditRow other = row;
  other.id = 2;
  hashes.insert(audit::seal({}, other).hash);
  EXPECT_EQ(hashes.size(), 2 + std::size(columns) + 1);
}

}  // namespace
}  // namespace baton::documents
