#pragma once

#include <string>
#include <vector>

#include "apps/documents/common/settings.h"
#include "apps/documents/operate/places.h"
#include "apps/documents/operate/up.h"
#include "apps/documents/operate/verify.h"

namespace baton::documents {

struct Options {
  enum class Command { service, up, verify, trace, verify_audit } command = Command::service;
  Settings settings;  // of a service
  Places places;      // of the others
  UpOptions up;
  Millis wait{0};  // verify: until nothing is unfinished
  VerifyOptions verify;
  bool json = false;
  std::string correlation_id;  // trace
  std::string known_head;      // audit verify
};

struct Parsed {
  Options options;
  std::string help;   // to be printed instead of doing anything
  std::string wrong;  // what is wrong with the command line, the environment or the file
};

[[nodiscard]] Parsed parse_command_line(const std::vector<std::string>& words);

}  // namespace baton::documents
