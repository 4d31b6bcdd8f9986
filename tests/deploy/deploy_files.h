#pragma once

// The files of deploy/ as a test reads them, and what the programs make of them.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/documents/common/settings.h"

namespace baton::test {

// BATON_DEPLOY/NAME. Throws if it is not there.
[[nodiscard]] std::string deploy_text(const std::string& name);

// The documents of a YAML file as JSON, with `<<: *alias` merged: a plain scalar is a number, true
// or false if it looks like one, a quoted one is text.
[[nodiscard]] std::vector<nlohmann::json> deploy_yaml(const std::string& name);
[[nodiscard]] nlohmann::json yaml_as_json(const std::string& text);

// The five services and where they listen unless told otherwise.
[[nodiscard]] const std::map<std::string, int>& document_services();

struct ServiceStart {
  std::vector<std::string> arguments;  // after `documents`
  std::map<std::string, std::string> environment;
  // What is in the settings file that --config or DOCUMENTS_CONFIG names.
  std::string settings_file;
};

// What `documents` would run with. Throws if it would refuse, or if a variable DOCUMENTS_… is none
// that it reads.
[[nodiscard]] documents::Settings settings_of(ServiceStart start);

[[nodiscard]] int port_of(const documents::Settings& settings);

}  // namespace baton::test
