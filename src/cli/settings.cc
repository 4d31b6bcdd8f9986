#include "cli/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/file.h"
#include "cli/remedy.h"
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

// An empty one is more often a variable that was lost on the way than meant to be none, and then
// the default store would lock elsewhere than the other machines do.
Result<std::string> store_of_environment() {
  const char* value = std::getenv("BATON_STORE");
  if (value == nullptr) return std::string();
  if (*value != '\0') return std::string(value);
  return Error{.code = Code::bad_url,
               .message = "BATON_STORE is set but empty; name a store in it, or unset it"};
}

// Nothing if there is no such file.
Result<std::optional<std::string>> read_if_there(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return std::optional<std::string>();
  auto text = read_file(file, policy::kMaxYamlBytes);
  if (!text) return text.error();
  return std::optional(std::move(*text));
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

// For this user alone, as the specification of $XDG_STATE_HOME asks, also if it was there before.
std::error_code make_private_directory(const fs::path& directory) {
  std::error_code problem;
  fs::create_directories(directory.parent_path(), problem);
  if (problem) return problem;
  struct stat found {};
  const bool made = ::mkdir(directory.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return {errno, std::generic_category()};
  if (::lstat(directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
      found.st_uid == ::geteuid() && (found.st_mode & 0777) != 0700) {
    fs::permissions(directory, fs::perms::owner_all, problem);
  }
  return problem;
}

// A relative path is one from the directory of the file that says it: else it would be another
// store in each directory that baton is started in.
std::string relative_to(const fs::path& directory, const std::string& store) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!store.starts_with(kScheme)) return store;
  const std::string path = store.substr(kScheme.size());
  // Of those that are no path the store says what is wrong.
  if (path.empty() || path.starts_with('/') || path == ":memory:") return store;
  return std::string(kScheme) + (directory / path).string();
}

Result<Settings> parse_file(const fs::path& file, std::string_view text) {
  auto settings = parse_settings(text);
  if (!settings) {
    settings.error().message = file.string() + ": " + settings.error().message;
  } else if (file.has_parent_path()) {
    settings->store = relative_to(file.parent_path(), settings->store);
  }
  return settings;
}

// The first baton.yaml: the one here, unless the store was given otherwise, then the user's own.
// One that is here but not safe is an error: to go on without it would be to lock in another store.
Result<Settings> settings_of_file(bool store_is_given) {
  const fs::path here = "baton.yaml";
  if (!store_is_given) {
    auto text = read_own_file(here, policy::kMaxYamlBytes);
    if (!text) {
      text.error().message += "; change that, say --store URL, or set BATON_STORE";
      return text.error();
    }
    if (*text) return parse_file(here, **text);
  }
  const auto directory = xdg_directory("XDG_CONFIG_HOME", ".config");
  if (!directory) return Settings{};
  const fs::path own = *directory / "baton" / "baton.yaml";
  auto text = read_if_there(own);
  if (!text) return text.error();
  return *text ? parse_file(own, **text) : Settings{};
}

Result<std::string> default_store() {
  const auto state = xdg_directory("XDG_STATE_HOME", ".local/state");
  if (!state) {
    return Error{.code = Code::bad_url,
                 .message = "no store: HOME is not set; say --store URL or set BATON_STORE"};
  }
  const fs::path directory = *state / "baton";
  if (const auto problem = make_private_directory(directory)) {
    return Error{.code = Code::bad_store,
                 .message = "cannot make " + directory.string() + " for the default store (" +
                            problem.message() + "); say --store URL"};
  }
  return "sqlite:" + (directory / "baton.db").string();
}

// On a terminal each time. Elsewhere only when the store is first used, so that the mail of a cron
// job says it once and not every minute.
void say_default_store(const Output& out, std::string_view store) {
  std::error_code unknown;
  const bool is_new = !fs::exists(store.substr(store.find(':') + 1), unknown);
  out.hint(
      "the default store locks the processes of this user on this machine; for more, set "
      "BATON_STORE",
      is_new);
}

void fill(std::string& into, const std::string& value) {
  if (into.empty()) into = value;
}

}  // namespace

Result<std::string> resolve_owner(const Context& context) {
  if (!context.given.owner.empty()) return context.given.owner;
  auto store = context.given.store.empty() ? store_of_environment() : context.given.store;
  if (!store) return store.error();
  auto from_file = settings_of_file(!store->empty());
  if (!from_file) return from_file.error();
  return from_file->owner;
}

Result<Settings> resolve_settings(const Context& context) {
  Settings settings = context.given;
  if (settings.store.empty()) {
    auto store = store_of_environment();
    if (!store) return store.error();
    settings.store = std::move(*store);
  }
  auto from_file = settings_of_file(!settings.store.empty());
  if (!from_file) return from_file.error();
  fill(settings.store, from_file->store);
  fill(settings.region, from_file->region);
  fill(settings.owner, from_file->owner);
  if (settings.store.empty()) {
    auto store = default_store();
    if (!store) return store.error();
    settings.store = std::move(*store);
    settings.default_store = true;
    say_default_store(context.out, settings.store);
  }
  if (settings.store.starts_with("memory:")) {
    return Error{.code = Code::bad_url,
                 .message =
                     "memory: is for programs that use the library: its locks end with this "
                     "command, and no other process sees them; use sqlite:PATH"};
  }
  if (auto ok = check_password(settings.store); !ok) return ok.error();
  return settings;
}

}  // namespace baton::cli
