#pragma once

// The settings of a service as they are written. Each has one name in three places, and the first
// one that says something counts:
//
//   --lock-ttl 10s     DOCUMENTS_LOCK_TTL=10s     lock-ttl: 10s, in the file of --config
//
// The file holds for all services; a map under the name of a service comes on top for that one.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "apps/documents/common/settings.h"
#include "baton/result.h"

namespace baton::documents {

struct SettingName {
  std::string name;  // lock-ttl
  std::string type;  // for help; empty: a switch
  std::string about;
  std::string fallback;
};

// With the defaults of that service.
[[nodiscard]] std::vector<SettingName> setting_names(std::string_view service);

// What is written, and where: "--lock-ttl", "DOCUMENTS_LOCK_TTL" or "docs.yaml: line 3: lock-ttl".
struct SettingWord {
  std::string text;
  std::string where;
};
using SettingWords = std::map<std::string, SettingWord>;

// From the environment and, if there is a path, the file. Errors name the file and the line.
[[nodiscard]] Result<SettingWords> read_setting_words(const std::string& service,
                                                      const std::string& config_path);

// Errors say where a wrong value comes from and what is allowed. They never repeat a URL, which may
// have a password.
[[nodiscard]] Result<Settings> understand(const std::string& service, const SettingWords& words);

}  // namespace baton::documents
