#include "store/kubernetes/schema_version.h"

#include "store/kubernetes/object_name.h"

namespace baton::store::kubernetes {
namespace {

constexpr Millis kLookLimit{2000};

}  // namespace

SchemaVersion::~SchemaVersion() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Result<std::int64_t> SchemaVersion::ask(Deadline deadline) {
  const Instant asked = BootClock::now();
  const auto lease = api_.get(object_name(core::kSchemaKey), deadline);
  if (!lease) return lease.error();
  std::int64_t version = 0;
  if (*lease) {
    Timings timings;
    const auto state =
        parse_document((*lease)->document, (*lease)->version, {}, api_.now(), timings);
    if (!state || (*lease)->key != core::kSchemaKey) {
      return Error{.code = Code::bad_store,
                   .message = "the lock schema is damaged (Lease " + (*lease)->name + ")"};
    }
    version = state->note.ordinal;
  }
  keep(version, asked);
  return version;
}

void SchemaVersion::keep(std::int64_t version, Instant asked) {
  const std::lock_guard lock(mutex_);
  if (asked < asked_) return;
  version_ = version;
  asked_ = asked;
}

void SchemaVersion::wrote(std::int64_t version) { keep(version, BootClock::now()); }

std::int64_t SchemaVersion::guess() {
  const std::lock_guard lock(mutex_);
  if (BootClock::now() - asked_ > kSchemaLag / 2 && !wanted_) {
    wanted_ = true;
    if (!thread_.joinable()) {
      thread_ = std::jthread([this](const std::stop_token& stop) { look_loop(stop); });
    }
    signal_.notify_all();
  }
  return version_;
}

Result<std::int64_t> SchemaVersion::confirm(Deadline deadline) {
  {
    std::unique_lock lock(mutex_);
    const auto fresh = [&] { return BootClock::now() - asked_ <= kSchemaLag; };
    while (wanted_ && !fresh() && BootClock::now() < deadline) {
      signal_.wait_for(lock, Millis(50));
    }
    if (fresh()) return version_;
  }
  return ask(deadline);
}

void SchemaVersion::look_loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      if (!signal_.wait(lock, stop, [&] { return wanted_; })) return;
    }
    // An error is not reported here: a request that needs the version reads it itself.
    (void)ask(BootClock::now() + kLookLimit);
    const std::lock_guard lock(mutex_);
    wanted_ = false;
    signal_.notify_all();
  }
}

}  // namespace baton::store::kubernetes
