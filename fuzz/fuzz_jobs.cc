#include "baton/job_config.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const auto one_line = [](const baton::Error& error) {
    promise(error.message.find('\n') == std::string::npos, "a refusal is one line");
  };
  const auto config = baton::JobConfig::parse(baton::fuzz::text_of(data, size));
  if (!config) {
    one_line(config.error());
    return 0;
  }
  for (const auto& [name, section] : config->sections()) {
    if (const auto job = config->configure(name); !job) one_line(job.error());
  }
  if (const auto known = config->check({}); !known) one_line(known.error());
  return 0;
}
