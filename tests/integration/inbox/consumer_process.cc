// A consumer in a process of its own, for tests that kill and stop it.
//
//   consumer_process BROKER DATABASE FAULT MARKER SHIFT_MS
//
// FAULT happens once, to the process that makes the file MARKER:
//   none             nothing
//   kill_in_handler  SIGKILL when the handler has written its effect
//   kill_before_ack  SIGKILL when the transaction is committed, and nothing acknowledged
//   kill_in_hook     SIGKILL when on_give_up has written its effect; the handler fails
//   stop_in_handler, stop_before_ack: SIGSTOP; sleep_in_handler: for ever
// and kill_deadly, SIGKILL in the handler of each event of the aggregate `deadly`, every time.
// kill_deadly_hook: the same in on_give_up; the handler fails for `deadly`, and for `late` once.
// SHIFT_MS is added to the clock of the database. Prints "ready", and runs until its input ends.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "consumer_effect.h"

int main(int argc, char** argv) {
  using namespace baton;
  if (argc != 6) return 2;
  const std::string fault = argv[3];
  const std::string marker = argv[4];
  const Millis shift{std::atoll(argv[5])};
  const auto strike = [&](const std::string& place) {
    const bool stop = fault == "stop_" + place;
    if (!stop && fault != "kill_" + place) return;
    const int file = ::open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) return;
    ::close(file);
    // Of this thread, so that it stops right here: on a signal to the process it might go on for a
    // moment, and stop inside a transaction.
    if (stop) ::raise(SIGSTOP);
    if (!stop) ::kill(::getpid(), SIGKILL);
  };
  auto broker = Broker::open(argv[1]).value();
  ConsumerOptions options{.name = "validation", .queue = "q"};
  options.poll_interval = Millis{10};
  options.handler_timeout = Millis{500};
  options.max_retries = 2;
  options.retry_delays = {Millis{0}};
  options.time_shift = [shift] { return shift; };
  options.on_note = [&](const ConsumerNote& note) {
    if (note.kind == ConsumerNote::Kind::processed) strike("before_ack");
  };
  options.on_give_up = [&](Handling& handling) {
    test::write_effect(handling, "given up");
    strike("in_hook");
    if (fault == "kill_deadly_hook") ::kill(::getpid(), SIGKILL);
  };
  Consumer consumer(broker, argv[2], std::move(options), [&](Handling& handling) {
    test::write_effect(handling);
    if (fault == "kill_deadly" && handling.event().aggregate == "deadly") {
      ::kill(::getpid(), SIGKILL);
    }
    strike("in_handler");
    if (fault == "kill_deadly_hook") {
      const std::string& aggregate = handling.event().aggregate;
      if (aggregate == "deadly" || (aggregate == "late" && handling.attempt() == 1)) {
        return failed("not now");
      }
    }
    if (fault == "sleep_in_handler") ::pause();
    return fault == "kill_in_hook" ? failed("it never works") : done();
  });
  std::printf("ready\n");  // first, for it may die at once
  std::fflush(stdout);
  consumer.start().value();
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return consumer.stop() ? 0 : 1;
}
