// deploy/filebeat: the fields that Elasticsearch knows are those that the services log and that
// docs/observing.md lists.

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "deploy/shared_platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

json index_template() { return json::parse(deploy_text("filebeat/eda-logs.template.json")); }
json filebeat() { return deploy_yaml("filebeat/filebeat.yml").at(0); }

// The types of fields, by their dotted names.
void collect(const json& properties, const std::string& prefix,
             std::map<std::string, std::string>& types) {
  for (const auto& [name, one] : properties.items()) {
    if (one.contains("properties")) {
      collect(one["properties"], prefix + name + ".", types);
    } else {
      types[prefix + name] = one["type"];
    }
  }
}

std::map<std::string, std::string> mapped() {
  std::map<std::string, std::string> types;
  collect(index_template()["template"]["mappings"]["properties"], "", types);
  return types;
}

// The table of docs/observing.md: fields, with what it says in which lines they are.
std::map<std::string, std::string> documented() {
  std::ifstream file(BATON_DEPLOY "/../docs/observing.md");
  std::map<std::string, std::string> found;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Logs in Elasticsearch";
    if (!inside || !line.starts_with("| `")) continue;
    const auto end = line.find(" | ");
    const std::string fields = line.substr(0, end);
    const std::regex name("`([^`]+)`");
    for (std::sregex_iterator it(fields.begin(), fields.end(), name), last; it != last; ++it) {
      found[(*it)[1]] = line.substr(end);
    }
  }
  return found;
}

// Every line of every service.
const std::vector<json>& logged_lines() {
  static const std::vector<json> all = [] {
    std::vector<json> found;
    for (const auto& [service, port] : document_services()) {
      std::istringstream lines(shared_platform().log(service + "-1"));
      for (std::string line; std::getline(lines, line);) {
        found.push_back(json::parse(line, nullptr, false));
      }
    }
    return found;
  }();
  return all;
}

std::set<std::string> logged() {
  std::set<std::string> names;
  for (const json& line : logged_lines()) {
    for (const auto& [name, value] : line.items()) names.insert(name);
  }
  return names;
}

TEST(LogShipping, each_line_is_an_object_and_each_field_is_mapped) {
  EXPECT_GT(logged_lines().size(), 40U);
  for (const json& line : logged_lines()) ASSERT_TRUE(line.is_object()) << line;
  const auto types = mapped();
  for (const std::string& name : logged()) EXPECT_TRUE(types.contains(name)) << name;
}

TEST(LogShipping, the_mapped_fields_are_those_that_are_documented) {
  const auto types = mapped();
  const auto table = documented();
  for (const auto& [name, type] : types) EXPECT_TRUE(table.contains(name)) << name;
  for (const auto& [name, where] : table) EXPECT_TRUE(types.contains(name)) << name;
}

TEST(LogShipping, each_documented_field_is_logged_unless_it_is_said_to_be_seldom) {
  const auto names = logged();
  std::size_t seldom = 0;
  for (const auto& [name, where] : documented()) {
    const bool excused =
        where.find("seldom") != std::string::npos || where.find("Filebeat") != std::string::npos;
    seldom += excused ? 1 : 0;
    EXPECT_TRUE(excused || names.contains(name)) << name;
  }
  EXPECT_LT(seldom, 10U);
}

TEST(LogShipping, each_value_fits_its_mapping) {
  const auto types = mapped();
  for (const json& line : logged_lines()) {
    for (const auto& [name, value] : line.items()) {
      const std::string type = types.at(name);
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (type == "integer" || type == "long") {
        EXPECT_TRUE(std::regex_match(text, std::regex("-?[0-9]{1,18}"))) << name << ": " << text;
      } else if (type == "date") {
        const std::regex time("[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}Z");
        EXPECT_TRUE(std::regex_match(text, time)) << name << ": " << text;
      } else if (type == "boolean") {
        EXPECT_TRUE(text == "true" || text == "false") << name << ": " << text;
      } else {
        EXPECT_TRUE(value.is_string()) << name;
      }
    }
  }
}

// Section 8.7 of the source design, row by row.
TEST(LogShipping, what_people_search_for_is_a_keyword) {
  const auto types = mapped();
  for (const char* name : {"correlationId", "eventId", "documentId", "service", "level",
                           "eventType", "routingKey", "container.name"}) {
    EXPECT_EQ(types.at(name), "keyword") << name;
  }
  EXPECT_EQ(types.at("@timestamp"), "date");
  EXPECT_EQ(types.at("message"), "text");
}

TEST(LogShipping, fields_that_nobody_has_mapped_cannot_fill_the_index) {
  EXPECT_EQ(index_template()["template"]["mappings"]["dynamic"], false);
}

TEST(Filebeat, writes_to_the_indexes_of_the_template) {
  const json config = filebeat();
  const std::string index = config["output.elasticsearch"]["index"];
  const json patterns = index_template()["index_patterns"];
  ASSERT_EQ(patterns.size(), 1U);
  const auto pattern = patterns[0].get<std::string>();
  EXPECT_TRUE(index.starts_with(pattern.substr(0, pattern.size() - 1))) << index;
  EXPECT_EQ(config["setup.template.pattern"], pattern);
}

TEST(Filebeat, reads_containers_as_json_and_does_not_read_itself) {
  const json config = filebeat();
  const json input = config["filebeat.inputs"].at(0);
  EXPECT_EQ(input["type"], "filestream");
  EXPECT_FALSE(input["id"].get<std::string>().empty());
  EXPECT_TRUE(input["parsers"][0].contains("container"));
  json decode;
  std::set<std::string> dropped;
  std::set<std::string> images;
  for (const json& one : config["processors"]) {
    if (one.contains("decode_json_fields")) decode = one["decode_json_fields"];
    if (one.contains("drop_fields")) {
      dropped = one["drop_fields"]["fields"].get<std::set<std::string>>();
    }
    if (one.contains("drop_event")) {
      for (const json& way : one["drop_event"]["when"]["or"]) {
        images.insert(way["contains"]["container.image.name"].get<std::string>());
      }
    }
  }
  EXPECT_EQ(decode["target"], "");  // beside @timestamp, not below a key of its own
  EXPECT_EQ(decode["overwrite_keys"], true);
  EXPECT_EQ(images, (std::set<std::string>{"elasticsearch", "filebeat", "kibana"}));
  for (const auto& [name, type] : mapped()) {
    EXPECT_FALSE(dropped.contains(name.substr(0, name.find('.')))) << name;
  }
}

TEST(Filebeat, has_what_compose_gives_it) {
  const json service = deploy_yaml("compose.yaml").at(0)["services"]["filebeat"];
  const std::string text = deploy_text("filebeat/filebeat.yml");
  const std::regex variable(R"(\$\{([A-Z_]+)\})");
  std::size_t variables = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), variable), end; it != end; ++it) {
    EXPECT_TRUE(service["environment"].contains((*it)[1].str())) << (*it)[1];
    ++variables;
  }
  EXPECT_EQ(variables, service["environment"].size());
  std::string mounts;
  for (const json& volume : service["volumes"]) mounts += volume.get<std::string>() + "\n";
  EXPECT_NE(mounts.find("./filebeat/filebeat.yml:/usr/share/filebeat/filebeat.yml:ro"),
            std::string::npos);
  const json config = filebeat();
  for (const json& path : config["filebeat.inputs"][0]["paths"]) {
    const std::string folder = path.get<std::string>().substr(0, path.get<std::string>().find('*'));
    EXPECT_NE(mounts.find(folder.substr(0, folder.size() - 1) + ":"), std::string::npos) << folder;
  }
}

TEST(Filebeat, the_script_that_sets_elasticsearch_up_can_be_read_and_has_the_template) {
  const auto checked = run({.argv = {"bash", "-n", BATON_DEPLOY "/filebeat/setup.sh"}});
  EXPECT_TRUE(checked.status.success()) << checked.err;
  const std::string script = deploy_text("filebeat/setup.sh");
  EXPECT_NE(script.find("eda-logs.template.json"), std::string::npos);
  const std::string user = filebeat()["output.elasticsearch"]["username"];
  EXPECT_NE(script.find("/_security/user/" + user + " "), std::string::npos);
}

}  // namespace
}  // namespace baton::test
