#pragma once

// warehouse.yaml: the key `scheduler` is that of baton/job_config.h, the key `warehouse` is ours.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/warehouse/poller.h"
#include "apps/warehouse/source.h"
#include "baton/job_config.h"

namespace baton::warehouse {

struct Config {
  JobConfig jobs;
  SourceOptions source;
  PollLimits limits;
  Millis statement_timeout{10'000};
  std::map<std::string, std::vector<std::string>> observers;  // by type
  std::map<std::string, std::string> sources;                 // by type; "" is that of all others

  // Where the rows of a type are.
  [[nodiscard]] const std::string& source_of(const std::string& type) const;
};

// Every error is one line, with its number.
[[nodiscard]] Result<Config> parse_config(std::string_view yaml);
[[nodiscard]] Result<Config> read_config(const std::string& path);  // empty: what comes built in

// TYPE=URL or URL, on top of what the file says.
[[nodiscard]] Result<void> set_source(Config& config, const std::string& words);

}  // namespace baton::warehouse
