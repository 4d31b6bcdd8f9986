// A fourth type of observer, as docs/warehouse.md adds it: one file and one line of YAML.

#include <sstream>

#include "warehouse/warehouse_support.h"

namespace baton::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class FourthType : public WarehouseTest {};

TEST_F(FourthType, is_one_file_and_one_line_of_yaml_as_the_docs_print_them) {
  const std::string docs = text_of(BATON_SOURCE_DIR "/docs/warehouse.md");
  const std::string code = text_of(BATON_SOURCE_DIR "/tests/warehouse/returns.cc");
  const std::string line = "    returns: [desk, post]\n";
  ASSERT_GT(code.size(), 100U);
  EXPECT_NE(docs.find("```cpp\n" + code + "```\n"), std::string::npos);
  EXPECT_NE(docs.find(line), std::string::npos);

  Settings settings;
  settings.observers += line;
  configure(settings);
  make_tables();
  for (const auto* id : {"a", "b"}) start(id);
  generate({"--rate", "100", "--seconds", "2"});
  expect_exact();
  EXPECT_GE(events("type = 'ReturnObservedEvent' AND routing_key = 'returns.observed'"), 50);
  EXPECT_GE(events("headers LIKE '%\"observer\":\"desk\"%'"), 1);
  EXPECT_GE(good_polls("returns"), 1);
  const auto jobs = show_job(*std::make_unique<LockClient>(locks()), "returns-observer-poll");
  EXPECT_TRUE(jobs) << "its lock is called as those of the others";
}

}  // namespace
}  // namespace baton::test
