// The service that docs/tutorial.md adds to the platform, as the page prints it.

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

constexpr int kDocuments = 60;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines of new files, and those that are added to others.
int lines_to_write(const std::string& page) {
  int lines = 0;
  bool in_block = false;
  bool in_diff = false;
  bool named = false;  // the path of a file was the last thing above
  std::istringstream text(page);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block && named;
      in_diff = line == "```diff";
      named = false;
    } else if (in_block) {
      lines += !in_diff || line.starts_with("+") ? 1 : 0;
    } else if (!line.empty()) {
      named = line.starts_with("**apps/documents/");
    }
  }
  return lines;
}

int occurrences(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class Tutorial : public testing::Test {
 protected:
  // The charges, by document: each must be there once.
  void expect_each_document_charged_once() const {
    const json charges = platform_.get("billing-1", "/charges?limit=200").at("items");
    std::set<std::string> documents;
    for (const auto& charge : charges) {
      EXPECT_TRUE(documents.insert(charge.at("documentId")).second) << charge;
      EXPECT_EQ(charge.at("cents"), 10);
      EXPECT_EQ(charge.at("owner"), "ann");
    }
    EXPECT_EQ(documents, submitted_);
    const json events = platform_.get("audit-1", "/audit?eventType=DocumentCharged&limit=200");
    EXPECT_EQ(events.at("items").size(), submitted_.size());
  }
  [[nodiscard]] std::int64_t charges() const {
    return platform_.database("billing")
        ->query("SELECT count(*) FROM charges")
        .value()
        .front()
        .integer(0);
  }
  [[nodiscard]] int in_logs(const std::string& what) const {
    return occurrences(platform_.log("billing-1"), what) +
           occurrences(platform_.log("billing-2"), what);
  }

  Platform platform_{"billing=2"};
  std::set<std::string> submitted_;
};

TEST_F(Tutorial, a_sixth_service_charges_each_document_once_whatever_is_killed) {
  for (int i = 1; i <= kDocuments; ++i) {
    submitted_.insert(platform_.submit(a_document("Letter " + std::to_string(i))));
    if (i % 10 != 0) continue;
    // In the midst of its work: some are charged, others are not.
    ASSERT_TRUE(poll_until([&] { return charges() >= i / 2; }));
    platform_.kill(i % 20 == 0 ? "billing-1" : "billing-2");
  }
  const json result = platform_.verify();
  EXPECT_TRUE(result.at("ok")) << result.dump(2);
  expect_each_document_charged_once();

  // Every event a second time, as from a relay that died before it had marked them as sent.
  ASSERT_TRUE(platform_.stop());
  ASSERT_TRUE(platform_.database("enrichment")
                  ->query("UPDATE outbox_events SET status = 'PENDING', sent_at = NULL"));
  platform_.start();
  EXPECT_TRUE(poll_until([&] { return in_logs("EVENT_SKIPPED_IDEMPOTENT") >= kDocuments; }));
  EXPECT_TRUE(platform_.verify().at("ok"));
  expect_each_document_charged_once();

  EXPECT_EQ(platform_.get("billing-1", "/readyz").at("status"), "ready");
  EXPECT_TRUE(platform_.command({"billing", "--help"}).status.success());
  EXPECT_TRUE(platform_.stop());
}

TEST(tutorial, a_sixth_service_takes_fewer_lines_than_the_page_says) {
  const std::string page = text_of(BATON_SOURCE_DIR "/docs/tutorial.md");
  const int lines = lines_to_write(page);
  EXPECT_LT(lines, 100);
  EXPECT_NE(page.find("It takes " + std::to_string(lines) + " lines"), std::string::npos) << lines;
  const std::string build = text_of(BATON_TUTORIAL_COPY "/apps/documents/CMakeLists.txt");
  EXPECT_EQ(occurrences(build, "billing"), 1);
}

}  // namespace
}  // namespace baton::test
