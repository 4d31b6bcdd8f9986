#include "cli/settings.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "cli/file.h"
#include "policy/suggest.h"
#include "policy/yaml.h"

namespace baton::cli {
namespace {

namespace fs = std::filesystem;
using policy::YamlNode;

constexpr std::array<std::string_view, 3> kKeys = {"store", "region", "owner"};

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// $XDG_… if it is set and absolute, as its specification asks, else a directory below home.
std::optional<fs::path> xdg_directory(const char* variable, const char* below_home) {
  const fs::path set = from_environment(variable);
  if (set.is_absolute()) return set;
  const fs::path home = from_environment("HOME");
  if (!home.is_absolute()) return std::nullopt;
  return home / below_home;
}

std::optional<fs::path> find_file() {
  std::error_code none;
  if (fs::exists("baton.yaml", none)) return "baton.yaml";
  const auto directory = xdg_directory("XDG_CONFIG_HOME", ".config");
  if (!directory) return std::nullopt;
  auto file = *directory / "baton" / "baton.yaml";
  if (fs::exists(file, none)) return file;
  return std::nullopt;
}

Result<Settings> parse_settings(std::string_view text) {
  auto document = policy::read_yaml(text);
  if (!document) return document.error();
  Settings settings;
  if (document->kind == YamlNode::Kind::none) return settings;
  if (document->kind != YamlNode::Kind::map) {
    return policy::yaml_error(document->line,
                              "settings are a map, such as 'store: sqlite:locks.db'");
  }
  for (const auto& value : document->items) {
    std::string* into = value.key == "store"    ? &settings.store
                        : value.key == "region" ? &settings.region
                        : value.key == "owner"  ? &settings.owner
                                                : nullptr;
    if (into == nullptr) {
      return policy::yaml_error(value.key_line, policy::unknown_word("key", value.key, kKeys));
    }
    if (value.kind != YamlNode::Kind::text || value.text.empty()) {
      return policy::yaml_error(value.line, value.key + " must be text");
    }
    *into = value.text;
  }
  return settings;
}

Result<std::string> default_store() {
  const auto state = xdg_directory("XDG_STATE_HOME", ".local/state");
  if (!state) {
    return Error{.code = Code::bad_url,
                 .message = "no store: HOME is not set; say --store URL or set BATON_STORE"};
  }
  const fs::path directory = *state / "baton";
  std::error_code problem;
  fs::create_directories(directory, problem);
  if (problem) {
    return Error{.code = Code::bad_store,
                 .message = "cannot make " + directory.string() + " for the default store (" +
                            problem.message() + "); say --store URL"};
  }
  return "sqlite:" + (directory / "baton.db").string();
}

void fill(std::string& into, const std::string& value) {
  if (into.empty()) into = value;
}

}  // namespace

Result<Settings> resolve_settings(const Settings& given) {
  Settings settings = given;
  fill(settings.store, from_environment("BATON_STORE"));
  if (const auto file = find_file()) {
    auto text = read_file(*file, policy::kMaxYamlBytes);
    if (!text) return text.error();
    auto from_file = parse_settings(*text);
    if (!from_file) {
      Error error = from_file.error();
      error.message = file->string() + ": " + error.message;
      return error;
    }
    fill(settings.store, from_file->store);
    fill(settings.region, from_file->region);
    fill(settings.owner, from_file->owner);
  }
  if (settings.store.empty()) {
    auto store = default_store();
    if (!store) return store.error();
    settings.store = std::move(*store);
  }
  return settings;
}

}  // namespace baton::cli
