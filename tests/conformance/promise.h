#pragma once

// What the promises of the lock model are shown with: a store on a test's time, and one request
// after the other.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/apply.h"
#include "harness.h"

namespace baton::test {

class Promise : public ::testing::Test {
 protected:
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  std::unique_ptr<LockStore> store = factory().fresh(time);

  Reply ask(const Request& request) {
    auto replies = store->apply({&request, 1}, soon());
    EXPECT_TRUE(replies) << replies.error().message;
    return replies ? replies->at(0) : Reply{};
  }
  Outcome outcome(const Request& request) { return ask(request).outcome; }
  LockInfo look(const std::string& key) {
    Request request;
    request.verb = Verb::get;
    request.targets = {{key, Mode::X}};
    return ask(request).info.value_or(LockInfo{});
  }
  // False if the store says that it cannot do this; then it must not do it half, but say so.
  bool can(const Request& request) {
    if (!core::beyond(store->capabilities(), request)) return true;
    const Reply reply = ask(request);
    EXPECT_EQ(reply.outcome, Outcome::unsupported);
    EXPECT_FALSE(reply.message.empty());
    return false;
  }
  bool can_take_sets() {
    return can(acquire(99, {{"DEFAULT:a", Mode::X}, {"DEFAULT:b", Mode::X}}));
  }
  bool can_convert(Mode from, Mode to) {
    return can(acquire(98, "DEFAULT:a", from)) &&
           can(same_targets(Verb::convert, acquire(99, "DEFAULT:a", to)));
  }
  Reply end(const Request& request) { return ask(same_targets(Verb::release, request)); }
  Reply claim(const Request& request) { return ask(same_targets(Verb::claim, request)); }
  Reply renew(const Request& request) { return ask(same_targets(Verb::renew, request)); }
  Reply convert(const Request& request, Mode mode, Millis queue_ttl = Millis{0}) {
    Request asked = same_targets(Verb::convert, request);
    for (Target& target : asked.targets) target.mode = mode;
    asked.queue_ttl = queue_ttl;
    return ask(asked);
  }
};

inline const std::string kName = "DEFAULT:job:1";
inline const std::string kOther = "DEFAULT:job:2";

}  // namespace baton::test
