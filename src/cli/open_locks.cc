#include "cli/open_locks.h"

#include <condition_variable>
#include <mutex>

namespace baton::cli {
namespace {

constexpr Millis kQuiet{1'000};

void tell_late(const std::stop_token& stop, Output& out, const std::string& text) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, kQuiet, [] { return false; });
  if (!stop.stop_requested()) out.progress(text);
}

}  // namespace

Result<LockClient> open_locks(const Context& context, const Settings& settings, Millis within) {
  const OpenProgress progress(context.out, settings.store, within);
  return open(settings.store, {.owner = settings.owner, .open_timeout = within});
}

Result<std::shared_ptr<LockStore>> open_locks_store(const Context& context,
                                                    const Settings& settings, Millis within) {
  const OpenProgress progress(context.out, settings.store, within);
  return open_store(settings.store, BootClock::now() + within);
}

Result<std::unique_ptr<StoreAdmin>> open_locks_admin(const Context& context,
                                                     const Settings& settings) {
  const Millis within = open_timeout();
  const OpenProgress progress(context.out, settings.store, within);
  return open_admin(settings.store, BootClock::now() + within);
}

OpenProgress::OpenProgress(Output& out, const std::string& url, Millis most) : out_(out) {
  if (!out.on_terminal() || most <= kQuiet) return;
  std::string text = "waiting for " + redact_url(url) + ", for " + about(most) + " at most";
  thread_ = std::jthread(
      [&out, text = std::move(text)](const std::stop_token& stop) { tell_late(stop, out, text); });
}

OpenProgress::~OpenProgress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  out_.end_progress();
}

}  // namespace baton::cli
