#pragma once

// What demos share: processes that are started, stopped and killed, a live table, and checks.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace demo {

struct Actor {
  std::string name;
  pid_t pid = 0;
  std::string state = "working";
};

class Stage {
 public:
  // `picture` is drawn again and again while something is waited for: lines, each with its end.
  explicit Stage(std::function<std::string()> picture);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // A process that does not outlive the demo. Its output goes to `log`, or where ours goes.
  static pid_t start(const std::vector<std::string>& words, const std::string& log = "");
  Actor& enter(std::string name, const std::vector<std::string>& words,
               const std::string& log = "");
  void kill(Actor& actor);
  void stop_all();  // every process that is left, at once
  [[nodiscard]] std::vector<Actor>& actors() { return actors_; }

  void say(const std::string& what);
  // What the live table shows, for those who do not see it: nothing on a terminal.
  void tell(const std::string& what);

  // The live table: over itself on a terminal, left out elsewhere. As much of what was said as the
  // screen has room for; draw_last() shows all of it.
  void draw() { draw(room_for_events()); }
  void draw_last() { draw(events_.size()); }
  // False if it takes too long.
  bool wait_until(const std::function<bool()>& condition);

  bool check(bool ok, const std::string& what);
  void fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void draw(std::size_t most_events);
  [[nodiscard]] std::size_t room_for_events() const;
  [[nodiscard]] std::string stamped(const std::string& what) const;

  const std::function<std::string()> picture_;
  std::vector<Actor> actors_;
  std::vector<std::string> events_;
  std::size_t drawn_ = 0;  // lines
  std::size_t picture_lines_ = 0;
  const bool terminal_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool failed_ = false;
};

// The program that this process runs.
[[nodiscard]] std::string own_program();

enum class Afterwards { remove, keep };  // keep: but not when it was interrupted

// Runs `body` with a new directory.
[[nodiscard]] int with_directory(const std::function<int(const std::string&)>& body,
                                 Afterwards afterwards = Afterwards::remove);

}  // namespace demo
