#include "locks/notify_floor.h"

#include <atomic>
#include <semaphore>
#include <thread>

#include "baton/clock.h"

namespace baton::bench {

NotifyFloor::NotifyFloor(const std::string& url) : writer_(url), listener_(url) {
  writer_.ask(
      "CREATE TABLE IF NOT EXISTS floor_baton (name text PRIMARY KEY, holder bigint)"
      " WITH (fillfactor = 70);"
      "INSERT INTO floor_baton VALUES ('one', 0) ON CONFLICT DO NOTHING");
  writer_.prepare("pass",
                  "UPDATE floor_baton SET holder = holder + 1 WHERE name = 'one'"
                  " RETURNING pg_notify('floor_passed', '')");
  listener_.ask("LISTEN floor_passed");
}

std::vector<double> NotifyFloor::measure(std::chrono::milliseconds time) {
  std::vector<double> samples;
  std::binary_semaphore heard(0);
  Instant heard_at;
  std::atomic<bool> over{false};
  std::jthread listening([&] {
    while (true) {
      listener_.await_notification();
      if (over) return;
      heard_at = BootClock::now();
      heard.release();
    }
  });
  const Instant end = BootClock::now() + time;
  while (BootClock::now() < end) {
    const Instant sent = BootClock::now();
    writer_.run("pass", {});
    heard.acquire();
    samples.push_back(std::chrono::duration<double, std::milli>(heard_at - sent).count());
    // Time for the listener to be back in poll(2): what is measured is a wake-up.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  over = true;
  writer_.run("pass", {});
  return samples;
}

}  // namespace baton::bench
