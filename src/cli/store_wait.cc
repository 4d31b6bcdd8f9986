#include "cli/store_wait.h"

#include <algorithm>
#include <thread>

#include "cli/json_writer.h"
#include "cli/remedy.h"

namespace baton::cli {
namespace {

constexpr Millis kFirstPause{200};
constexpr Millis kLongestPause{2'000};
constexpr Millis kTellEvery{60'000};

}  // namespace

StoreWait::StoreWait(const Output& out, std::optional<Instant> until)
    : out_(out), until_(until), pause_(kFirstPause) {}

bool StoreWait::operator()(const Error& error) {
  const Instant now = BootClock::now();
  if (error.code != Code::unavailable || (until_ && now >= *until_)) return false;
  if (!out_.quiet() && now >= tell_at_) {
    tell_at_ = now + kTellEvery;
    JsonWriter json;
    json.begin_object().field("event", "waiting").field("for", "store");
    const std::string message = with_remedy(error).message;
    json.field("message", printable(message)).end_object();
    out_.event("waiting for the store: " + message, json.text());
  }
  Instant again = now + pause_;
  if (until_) again = std::min(again, *until_);
  std::this_thread::sleep_for(again - now);
  pause_ = std::min(2 * pause_, kLongestPause);
  return true;
}

}  // namespace baton::cli
