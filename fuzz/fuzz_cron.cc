// Cron expressions, yearly rules and files of time zones. Input: the expression, a line break, and
// the rule or the file.

#include "fuzz.h"
#include "schedule/cron.h"

namespace baton::fuzz {
namespace {

using schedule::Cron;
using schedule::TimeZone;
using schedule::UtcSeconds;

void fire(std::string_view expression, std::shared_ptr<const TimeZone> zone) {
  const auto cron = Cron::parse(expression, std::move(zone));
  if (!cron) {
    promise(cron.error().message.find('\n') == std::string::npos, "a refusal is one line");
    return;
  }
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{1'800'000'000}}) {
    UtcSeconds at{std::chrono::seconds(start)};
    for (int i = 0; i < 3; ++i) {
      const UtcSeconds next = cron->next(at);
      promise(next > at, "the next time is later");
      at = next;
    }
  }
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string_view text = fuzz::text_of(data, size);
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view expression = text.substr(0, end);
  const std::string_view rest = text.substr(std::min(end + 1, text.size()));
  fuzz::fire(expression, schedule::TimeZone::load("UTC").value());
  (void)schedule::parse_yearly_rule(rest);
  auto zone = schedule::TimeZone::parse("Fuzz/Zone", rest);
  if (zone) fuzz::fire(expression, std::make_shared<const schedule::TimeZone>(std::move(*zone)));
  return 0;
}
