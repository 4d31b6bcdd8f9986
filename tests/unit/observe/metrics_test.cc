#include "baton/metrics.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace baton::observe {
namespace {

using ::testing::Test;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, are_shown_as_prometheus_reads_them) {
  Metrics metrics;
  metrics.counter("locks_total", "How many.", {{"reason", "contention"}}).add(2);
  metrics.gauge("waiting", "How many wait.").set(3);
  const auto took = metrics.histogram("took_seconds", "How long.", {}, {0.1, 1});
  took.observe(0.05);
  took.observe(5);
  const std::string text = metrics.text();
  EXPECT_TRUE(has_line(text, "# HELP locks_total How many.")) << text;
  EXPECT_TRUE(has_line(text, "# TYPE locks_total counter")) << text;
  EXPECT_TRUE(has_line(text, R"(locks_total{reason="contention"} 2)")) << text;
  EXPECT_TRUE(has_line(text, "waiting 3")) << text;
  EXPECT_TRUE(has_line(text, "took_seconds_count 2")) << text;
  EXPECT_TRUE(has_line(text, R"(took_seconds_bucket{le="0.1"} 1)")) << text;
  EXPECT_TRUE(has_line(text, R"(took_seconds_bucket{le="+Inf"} 2)")) << text;
}

TEST(Metrics, asked_for_again_are_the_same) {
  Metrics metrics;
  metrics.counter("a_total", "A.").add();
  metrics.counter("a_total", "A.").add();
  EXPECT_TRUE(has_line(metrics.text(), "a_total 2"));
}

TEST(Metrics, made_up_labels_cannot_fill_the_memory) {
  Metrics metrics(2);
  for (const std::string path : {"/a", "/b", "/c", "/d", "/a"}) {
    metrics.counter("hits_total", "Hits.", {{"path", path}}).add();
  }
  const std::string text = metrics.text();
  EXPECT_TRUE(has_line(text, R"(hits_total{path="/a"} 2)")) << text;
  EXPECT_TRUE(has_line(text, R"(hits_total{path="other"} 2)")) << text;
  EXPECT_EQ(text.find("/c"), std::string::npos) << text;
}

TEST(Metrics, values_are_cut_and_bytes_that_are_no_text_are_not_shown) {
  Metrics metrics;
  metrics.counter("a_total", "A.", {{"x", "\xff"}}).add();
  metrics.counter("a_total", "A.", {{"x", std::string(127, 'a') + "ä"}}).add();
  metrics.counter("a_total", "A.", {{"x", "\"quoted\"\n"}}).add();
  const std::string text = metrics.text();
  EXPECT_TRUE(has_line(text, R"(a_total{x="other"} 1)")) << text;
  EXPECT_TRUE(has_line(text, "a_total{x=\"" + std::string(127, 'a') + "\"} 1")) << text;
  EXPECT_TRUE(has_line(text, R"(a_total{x="\"quoted\"\n"} 1)")) << text;
}

TEST(Metrics, one_name_is_one_kind) {
  Metrics metrics;
  (void)metrics.counter("a_total", "A.");
  EXPECT_THROW((void)metrics.gauge("a_total", "A."), std::invalid_argument);
  EXPECT_THROW((void)metrics.counter("a-b", "A."), std::invalid_argument);
}

}  // namespace
}  // namespace baton::observe
