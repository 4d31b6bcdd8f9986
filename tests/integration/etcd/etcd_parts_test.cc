// What a process knows of its own grants and of others' holders, and what it tells other processes,
// without a server.

#include <gtest/gtest.h>

#include "conformance/harness.h"
#include "store/etcd/local_view.h"
#include "store/etcd/txn_plan.h"
#include "store/etcd/wire.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using core::Holder;
using core::HolderState;
using core::NameState;
using store::etcd::LocalView;
using store::etcd::OwnGrants;
using Times = OwnGrants::Times;

const std::string kName = "DEFAULT:job:1";
const std::string kOther = "DEFAULT:job:2";

TEST(EtcdOwnGrants, what_a_step_left_as_it_was_is_not_taken_back) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.holds_until = 10s}, .as_of = 5, .written = true});
  own.change(kName, grant(1),
             {.before = {.holds_until = 10s}, .after = {.holds_until = 20s}, .as_of = 5});
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 10s}, .after = {.holds_until = 10s}, .as_of = 6, .written = true});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 20s}));
}

// Two renewals of one version, of which the one that asked first ends last, with a note or without.
TEST(EtcdOwnGrants, a_renewal_that_ends_late_does_not_take_back_a_longer_one) {
  for (const bool written : {false, true}) {
    OwnGrants own;
    own.change(kName, grant(1), {.after = {.holds_until = 10s}, .as_of = 5, .written = true});
    own.change(kName, grant(1),
               {.before = {.holds_until = 10s}, .after = {.holds_until = 20s}, .as_of = 5});
    own.change(kName, grant(1),
               {.before = {.holds_until = 10s},
                .after = {.holds_until = 15s},
                .as_of = written ? 6 : 5,
                .written = written});
    EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 20s}));
  }
}

TEST(EtcdOwnGrants, a_renewal_with_a_note_counts_although_another_write_is_told_first) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.holds_until = 10s}, .as_of = 5, .written = true});
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 10s}, .after = {.holds_until = 10s}, .as_of = 7, .written = true});
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 10s}, .after = {.holds_until = 20s}, .as_of = 6, .written = true});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 20s}));
}

// Released, it stays taken only for as long as it was to be at least.
TEST(EtcdOwnGrants, a_time_that_a_write_shortens_is_shorter_also_beside_renewals) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.holds_until = 10s}, .as_of = 5, .written = true});
  own.change(kName, grant(1),
             {.before = {.holds_until = 10s}, .after = {.holds_until = 20s}, .as_of = 5});
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 10s}, .after = {.holds_until = 4s}, .as_of = 7, .written = true});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 4s}));
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 10s}, .after = {.holds_until = 15s}, .as_of = 6, .written = true});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 4s})) << "it came before";
}

// Another thread has handed it the lock, but says so only when it was claimed already.
TEST(EtcdOwnGrants, a_step_that_is_told_late_takes_nothing_back) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.waits_until = 5s}, .as_of = 5, .written = true});
  own.change(
      kName, grant(1),
      {.before = {.holds_until = 2s}, .after = {.holds_until = 30s}, .as_of = 7, .written = true});
  own.change(
      kName, grant(1),
      {.before = {.waits_until = 5s}, .after = {.holds_until = 2s}, .as_of = 6, .written = true});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 30s}));
  own.change(kName, grant(1),
             {.before = {.holds_until = 30s}, .after = {.holds_until = 40s}, .as_of = 6});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 40s})) << "a renewal counts";
}

// It may be a waiter still.
TEST(EtcdOwnGrants, a_step_in_doubt_forgets_no_time) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.waits_until = 9s}, .as_of = 5, .written = true});
  own.change(kName, grant(1),
             {.before = {.waits_until = 9s}, .after = {.holds_until = 2s}, .as_of = 5});
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.holds_until = 2s, .waits_until = 9s}));
}

TEST(EtcdOwnGrants, one_that_begins_again_while_its_marks_are_removed_ends_again_later) {
  OwnGrants own;
  own.change(kName, grant(1), {.after = {.waits_until = 5s}, .as_of = 5, .written = true});
  const auto ended = own.take_ended(6s, 10);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_TRUE(own.take_ended(6s, 10).empty()) << "one remover is enough";
  EXPECT_TRUE(own.find(kName, grant(1))) << "it has ended for everybody else too";
  own.change(
      kName, grant(1),
      {.before = {.waits_until = 5s}, .after = {.waits_until = 11s}, .as_of = 6, .written = true});
  own.forget(ended[0]);
  EXPECT_EQ(own.find(kName, grant(1)), (Times{.waits_until = 11s}));
  EXPECT_TRUE(own.take_ended(10s, 10).empty());
  EXPECT_EQ(own.take_ended(12s, 10).size(), 1U);
}

TEST(EtcdLocalView, a_name_that_changes_hands_for_ever_is_remembered_once) {
  OwnGrants own;
  LocalView view(own);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    Holder holder;
    holder.grant = grant(i);
    holder.token = i;
    holder.state = HolderState::handed;
    NameState state;
    state.holders.push_back(holder);
    view.keep(
        kName, {}, state, [](GrantId) { return false; }, static_cast<std::int64_t>(i), true);
    EXPECT_EQ(view.sightings(kName), 1U);
  }
  view.keep(
      kName, {}, {}, [](GrantId) { return false; }, 101, true);
  EXPECT_EQ(view.sightings(kName), 0U);
}

// Another thread may be removing the marks of one that had ended, of some names before others.
TEST(EtcdPlan, a_set_that_had_ended_and_begins_again_writes_all_its_marks) {
  const Request request = acquire(1, {{kName, Mode::X}, {kOther, Mode::X}}, kQueueTtl);
  const store::Group group{{&request}, {kName, kOther}};
  const store::etcd::Layout layout("p");
  const std::string session = "session";
  core::Waiter waiter;
  waiter.grant = grant(1);
  waiter.alone = false;
  for (const bool had_ended : {false, true}) {
    store::Snapshot found{.now = 10s};
    std::map<std::string, NameState> states;
    for (const std::string& key : group.keys) {
      auto record = std::make_shared<store::etcd::Record>();
      waiter.stale = had_ended ? 5s : 15s;
      record->state.waiters = {waiter};
      record->version = 7;
      record->marks[grant(1)] = {.alive = 7, .lease = 70, .own = true};
      found.documents[key] = {.state = record->state, .version = 7, .provenance = record};
      waiter.stale = 20s;
      states[key].waiters = {waiter};
      states[key].note = {1, ""};
      states[key].dirty = true;
    }
    const store::Step step{group, found, states, {}, {}, false};
    const auto txn = store::etcd::TxnPlan(step, layout, session).txn({}, 0);
    for (const std::string& key : group.keys) {
      const std::string mark = layout.mark(key, grant(1), store::etcd::Mark::alive);
      EXPECT_EQ(std::count_if(txn.then.begin(), txn.then.end(),
                              [&](const auto& op) { return op.key == mark && op.lease == 70; }),
                had_ended ? 1 : 0);
    }
  }
}

TEST(EtcdMessage, what_one_process_tells_another_arrives_as_it_was) {
  namespace wire = store::etcd::wire;
  const wire::Message sent{.grants = {grant(1), grant(2)},
                           .documents = {{kName, R"({"holders":[]})"}, {kOther, "{}"}}};
  const auto read = wire::message(wire::message(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->grants, sent.grants);
  EXPECT_EQ(read->documents, sent.documents);
  EXPECT_TRUE(wire::message(wire::message(wire::Message{})));
  // No name has such a key; a request for one must not keep others from being woken.
  const auto rest = wire::message(
      wire::message(wire::Message{.grants = {grant(1)}, .documents = {{"DEFAULT:a\nb", "{}"}}}));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->grants.size(), 1U);
  EXPECT_TRUE(rest->documents.empty());
}

// Anybody who may write below the prefix may have put it there.
TEST(EtcdMessage, what_is_no_message_is_not_taken_for_one) {
  const std::string good = store::etcd::wire::message({.grants = {grant(1)}});
  for (const std::string& bad :
       {std::string("g"), std::string("\n"), std::string("g \n"), std::string("g 12\n"),
        std::string("{\"grants\":[]}"), std::string("d DEFAULT:a\n"), std::string("x y\n"),
        good.substr(0, good.size() - 1), good + "d DEFAULT:a\n{}"}) {
    EXPECT_FALSE(store::etcd::wire::message(std::string_view(bad))) << bad;
  }
}

}  // namespace
}  // namespace baton::test
