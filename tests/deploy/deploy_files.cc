#include "deploy/deploy_files.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <stdlib.h>

#include <yaml-cpp/yaml.h>

#include "apps/documents/options.h"
#include "apps/documents/services.h"
#include "apps/documents/setting_words.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using nlohmann::json;

json scalar(const YAML::Node& node) {
  const auto text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "false") return text == "true";
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  if (digits) return std::stoll(text);
  return text;
}

json as_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar: return scalar(node);
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const auto& item : node) list.push_back(as_json(item));
      return list;
    }
    case YAML::NodeType::Map: {
      json map = json::object();
      for (const auto& item : node) {
        if (item.first.Scalar() != "<<") continue;
        map.update(as_json(item.second));
      }
      for (const auto& item : node) {
        const auto key = item.first.Scalar();
        if (key != "<<") map[key] = as_json(item.second);
      }
      return map;
    }
    default: return nullptr;
  }
}

// Sets variables until the end of the scope.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables)
      : variables_(variables) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const std::map<std::string, std::string> variables_;
};

// Of a variable that the program reads, or nothing.
bool is_variable(const std::string& service, const std::string& variable) {
  if (variable == "DOCUMENTS_CONFIG") return true;
  const auto names = documents::setting_names(service);
  return std::any_of(names.begin(), names.end(), [&](const documents::SettingName& one) {
    std::string expected = "DOCUMENTS_" + one.name;
    std::transform(expected.begin(), expected.end(), expected.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    return variable == expected;
  });
}

}  // namespace

std::string deploy_text(const std::string& name) {
  std::ifstream file(BATON_DEPLOY "/" + name);
  if (!file) throw std::runtime_error("there is no deploy/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

json yaml_as_json(const std::string& text) { return as_json(YAML::Load(text)); }

std::vector<json> deploy_yaml(const std::string& name) {
  std::vector<json> documents;
  for (const YAML::Node& node : YAML::LoadAll(deploy_text(name))) {
    documents.push_back(as_json(node));
  }
  return documents;
}

const std::map<std::string, int>& document_services() {
  static const std::map<std::string, int> services = [] {
    std::map<std::string, int> found;
    for (const auto& one : documents::all_services()) found[std::string(one.name)] = one.port;
    return found;
  }();
  return services;
}

documents::Settings settings_of(ServiceStart start) {
  const TempDir directory("settings");
  const std::string file = (directory / "documents.yaml").string();
  std::ofstream(file) << start.settings_file;
  const auto config = std::find(start.arguments.begin(), start.arguments.end(), "--config");
  if (config != start.arguments.end() && config + 1 != start.arguments.end()) config[1] = file;
  if (start.environment.contains("DOCUMENTS_CONFIG")) start.environment["DOCUMENTS_CONFIG"] = file;
  for (const auto& [variable, value] : start.environment) {
    if (!variable.starts_with("DOCUMENTS_")) continue;
    if (!is_variable(start.arguments.at(0), variable)) {
      throw std::runtime_error(variable + " is not read by the program");
    }
  }
  const Environment environment(start.environment);
  const auto parsed = documents::parse_command_line(start.arguments);
  if (!parsed.wrong.empty()) throw std::runtime_error(parsed.wrong);
  if (!parsed.help.empty()) throw std::runtime_error("this only prints help");
  return parsed.options.settings;
}

int port_of(const documents::Settings& settings) {
  return std::stoi(settings.listen.substr(settings.listen.rfind(':') + 1));
}

}  // namespace baton::test
