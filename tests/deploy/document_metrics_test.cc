// The metrics of the document platform: their names, and that they say what is in the database.

#include <regex>

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "deploy/shared_platform.h"

namespace baton::test {
namespace {

// The value of a series, as it is printed.
std::string value_of(const std::string& service, const std::string& series) {
  const std::string text = "\n" + metrics_of(shared_platform(), service);
  const auto at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const auto from = at + series.size() + 2;
  return text.substr(from, text.find('\n', from) - from);
}

bool shows(const std::string& service, const std::string& series, const std::string& value) {
  const bool seen = poll_until([&] { return value_of(service, series) == value; });
  if (!seen) ADD_FAILURE() << series << " is " << value_of(service, series);
  return seen;
}

TEST(DocumentMetrics, have_names_that_prometheus_finds_good) {
  for (const auto& [service, port] : document_services()) {
    const std::string text = metrics_of(shared_platform(), service);
    EXPECT_NE(text.find("baton_consumer_handled_total"), std::string::npos) << service;
    Process promtool({.argv = {"promtool", "check", "metrics"}});
    promtool.write(text);
    promtool.close_stdin();
    const auto ended = promtool.wait();
    ASSERT_TRUE(ended);
    EXPECT_TRUE(ended->success()) << service << "\n" << promtool.out() << promtool.err();
  }
}

TEST(DocumentMetrics, each_document_is_in_one_state) {
  const auto status = [](const std::string& name) {
    return "documents_by_status{status=\"" + name + "\"}";
  };
  EXPECT_TRUE(shows("ingestion", status("ENRICHED"), "2"));
  EXPECT_TRUE(shows("ingestion", status("REJECTED"), "1"));
  EXPECT_TRUE(shows("ingestion", status("FAILED"), "1"));
  EXPECT_TRUE(shows("ingestion", status("UPLOADED"), "0"));
  EXPECT_TRUE(shows("ingestion", status("VALIDATED"), "0"));
  EXPECT_TRUE(shows("ingestion", "documents_oldest_unfinished_age_seconds", "0"));
  EXPECT_TRUE(shows("audit", "documents_audit_oldest_unsealed_age_seconds", "0"));
}

// 2 enriched, 1 rejected and 1 failed: email to all, push to the 3 validated and the rejected one,
// SMS to the failed one.
TEST(DocumentMetrics, each_notification_is_counted) {
  const auto sent = [](const std::string& channel, const std::string& event) {
    return "documents_notifications_total{channel=\"" + channel + "\",event_type=\"" + event +
           "\"}";
  };
  EXPECT_TRUE(shows("notification", sent("email", "DocumentEnriched"), "2"));
  EXPECT_TRUE(shows("notification", sent("email", "DocumentRejected"), "1"));
  EXPECT_TRUE(shows("notification", sent("email", "DocumentFailed"), "1"));
  EXPECT_TRUE(shows("notification", sent("push", "DocumentValidated"), "3"));
  EXPECT_TRUE(shows("notification", sent("push", "DocumentRejected"), "1"));
  EXPECT_TRUE(shows("notification", sent("sms", "DocumentFailed"), "1"));
  EXPECT_TRUE(shows("notification", "documents_notification_failures_total{channel=\"sms\"}", "0"));
}

}  // namespace
}  // namespace baton::test
