#pragma once

// Everything that can happen next in a world, one step at a time.

#include "explore/store_side.h"
#include "explore/world.h"

namespace baton::explore {

enum class StepKind : std::uint8_t {
  ask,        // a client starts an acquisition; detail: its order
  claim,      // a waiter asks for its turn
  ask_again,  // a waiter repeats its acquire
  renew,
  convert,
  release,
  retry,
  give_up,
  crash,
  hear,  // a reply arrives
  lose_reply,
  deliver,           // a request arrives and is answered; subject: the message
  deliver_and_keep,  // as before, and it will arrive once more
  lose_request,
  tick,  // time passes; detail: how far each client's clock moves, two bits a client
};

[[nodiscard]] bool is_fault(StepKind kind);

struct Step {
  StepKind kind = StepKind::tick;
  std::uint8_t subject = 0;  // the client, or the place of the message
  std::uint8_t detail = 0;
};

// A world, the core that serves it, and the rules of both.
class Machine {
 public:
  explicit Machine(Setting setting) : setting_(std::move(setting)), store_(setting_) {}
  [[nodiscard]] const Setting& setting() const { return setting_; }

  [[nodiscard]] World first() const;
  void possible(const World& world, std::vector<Step>& steps) const;

  // Takes the step, normalises the world, and gives the first broken promise or nothing.
  std::string perform(World& world, Step step);

  // What every client would want to happen: all messages arrive, everybody asks for its turn and
  // releases what it gets, then a tick. Nobody starts anew. Adds the steps that it takes, and gives
  // the first broken promise.
  std::string be_fair(World& world, std::vector<Step>& taken);

  // Everybody has an answer, and the store has nothing left to remember.
  [[nodiscard]] bool at_rest(const World& world);

  [[nodiscard]] std::string describe(const World& world, Step step) const;

 private:
  [[nodiscard]] bool may_fail(const World& world) const;
  void possible_for(const World& world, std::size_t client, std::vector<Step>& steps) const;
  void possible_ticks(const World& world, std::vector<Step>& steps) const;
  void act(World& world, Step step) const;
  std::string deliver(World& world, std::size_t message, bool keep);
  void tick(World& world, std::uint8_t clocks) const;
  std::string take(World& world, Step step, std::vector<Step>& taken);
  std::string hear_all(World& world, std::vector<Step>& taken);
  std::string deliver_all(World& world, std::vector<Step>& taken);
  std::string act_fairly(World& world, std::vector<Step>& taken);

  Setting setting_;
  StoreSide store_;
};

}  // namespace baton::explore
