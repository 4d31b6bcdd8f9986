#include "store/common/document_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>

namespace baton::store {
namespace {

// Documents in memory. A test may say what happens before a commit, as if by another client.
class FakeDocuments final : public Documents {
 public:
  std::map<std::string, Document> kept;
  std::uint64_t revision = 1;
  int reads = 0;
  int writes = 0;
  bool guesses = false;
  bool knows_versions = false;
  bool removes_without_version = false;
  std::function<void()> before_commit;
  std::optional<Error> fails;

  Result<Snapshot> read(const Group& group, bool may_guess, Deadline) override {
    Snapshot found;
    found.now = core::StoreTime(1'000'000);
    if (guesses && may_guess) {
      for (const auto& key : group.keys) found.documents[key];
      found.guessed = true;
      return found;
    }
    ++reads;
    for (const auto& key : group.keys) {
      Document& document = found.documents[key];
      if (kept.contains(key)) document = kept[key];
      resolve(document.state, document.version);
    }
    if (knows_versions) found.base = revision * kDraws;
    return found;
  }

  Result<Commit> commit(const Step& step, Deadline) override {
    if (before_commit) std::exchange(before_commit, nullptr)();
    if (fails) return *fails;
    const auto dirty = step.dirty();
    if (dirty.empty()) {
      return Commit{.end = step.found.guessed ? Commit::End::unproven : Commit::End::done};
    }
    for (const auto& [key, document] : step.found.documents) {
      const std::uint64_t version = kept.contains(key) ? kept[key].version : 0;
      if (version != document.version) return Commit{.end = Commit::End::conflict};
    }
    ++revision;
    ++writes;
    bool removed = false;
    for (const auto& key : dirty) {
      kept[key] = {.state = step.states.at(key), .version = revision};
      kept[key].state.dirty = false;
      if (core::forgettable(kept[key].state, step.found.now)) removed = kept.erase(key) != 0;
    }
    return Commit{.version = removed && removes_without_version ? 0 : revision};
  }
};

class DocumentLoopTest : public ::testing::Test {
 protected:
  FakeDocuments documents;
  DocumentLoop loop{documents, {.max_set = 4, .names_per_write = 8}};

  static Request request(Verb verb, std::uint64_t grant, const std::string& key) {
    Request request;
    request.verb = verb;
    request.grant = {1, grant};
    request.targets = {{key, Mode::X}};
    request.ttl = Millis(10'000);
    request.claim_within = Millis(1'000);
    return request;
  }
  std::vector<Reply> apply(const std::vector<Request>& batch) {
    return loop.apply(batch, BootClock::now() + std::chrono::seconds(10)).value();
  }
};

TEST_F(DocumentLoopTest, requests_of_a_batch_for_one_name_go_into_one_write) {
  Request second = request(Verb::acquire, 2, "a");
  second.queue_ttl = Millis(1'000);
  const auto replies = apply({request(Verb::acquire, 1, "a"), second});
  EXPECT_EQ(replies[0].outcome, Outcome::granted);
  EXPECT_EQ(replies[1].outcome, Outcome::queued);
  EXPECT_EQ(documents.writes, 1);
}

TEST_F(DocumentLoopTest, a_try_on_a_busy_name_writes_nothing) {
  apply({request(Verb::acquire, 1, "a")});
  EXPECT_EQ(apply({request(Verb::acquire, 2, "a")})[0].outcome, Outcome::busy);
  EXPECT_EQ(documents.writes, 1);
}

TEST_F(DocumentLoopTest, a_guess_is_believed_only_when_it_was_written) {
  documents.guesses = true;
  EXPECT_EQ(apply({request(Verb::acquire, 1, "a")})[0].outcome, Outcome::granted);
  EXPECT_EQ(documents.reads, 0);
  EXPECT_EQ(apply({request(Verb::acquire, 2, "a")})[0].outcome, Outcome::busy);
  EXPECT_EQ(apply({request(Verb::release, 2, "b")})[0].outcome, Outcome::lost);
  EXPECT_EQ(documents.writes, 1);
}

TEST_F(DocumentLoopTest, tokens_grow_with_and_without_a_guess) {
  Token last = 0;
  for (std::uint64_t i = 1; i < 20; ++i) {
    documents.guesses = i % 3 != 0;
    documents.knows_versions = i % 2 != 0;
    const auto replies = apply({request(Verb::acquire, i, "a")});
    ASSERT_EQ(replies[0].outcome, Outcome::granted);
    EXPECT_GT(replies[0].tokens[0], last);
    last = replies[0].tokens[0];
    documents.guesses = false;
    const auto again = apply({request(Verb::acquire, i, "a")});
    EXPECT_EQ(again[0].tokens[0], last) << "what a reader sees is what the writer was told";
    apply({request(Verb::release, i, "a")});
    EXPECT_TRUE(documents.kept.empty());
  }
}

TEST_F(DocumentLoopTest, a_conflict_is_tried_again_on_what_is_there_now) {
  documents.before_commit = [&] { apply({request(Verb::acquire, 9, "b")}); };
  const auto replies = apply(
      {request(Verb::acquire, 1, "a"), request(Verb::acquire, 2, "b"), request(Verb::get, 0, "c")});
  EXPECT_EQ(replies[0].outcome, Outcome::granted);
  EXPECT_EQ(replies[1].outcome, Outcome::busy);
  EXPECT_EQ(replies[2].outcome, Outcome::done);
}

TEST_F(DocumentLoopTest, a_set_above_the_limit_is_unsupported_and_harms_nobody) {
  Request set = request(Verb::acquire, 1, "a");
  for (int i = 0; i < 4; ++i) set.targets.push_back({"n" + std::to_string(i), Mode::X});
  Request bad = request(Verb::acquire, 2, "b");
  bad.ttl = Millis(-1);
  const auto replies = apply({set, bad, request(Verb::acquire, 3, "c")});
  EXPECT_EQ(replies[0].outcome, Outcome::unsupported);
  EXPECT_EQ(replies[1].outcome, Outcome::invalid);
  EXPECT_EQ(replies[2].outcome, Outcome::granted);
}

TEST_F(DocumentLoopTest, damage_denies_its_own_name_only) {
  documents.kept["a"] = {.version = 1, .damage = "damaged"};

  const auto replies = apply({request(Verb::acquire, 1, "a"), request(Verb::acquire, 2, "b")});
  EXPECT_EQ(replies[0].outcome, Outcome::denied);
  EXPECT_EQ(replies[1].outcome, Outcome::granted);
}

TEST_F(DocumentLoopTest, an_error_after_a_part_was_written_leaves_the_rest_busy) {
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 16; ++i) {
    batch.push_back(request(Verb::acquire, i, "n" + std::to_string(i)));
  }
  documents.before_commit = [&] {
    documents.before_commit = [&] { documents.fails = Error{.message = "down"}; };
  };
  const auto replies = apply(batch);
  EXPECT_EQ(replies[0].outcome, Outcome::granted);
  EXPECT_EQ(replies[15].outcome, Outcome::busy);
}

// A document that is removed may have no version after that.
TEST_F(DocumentLoopTest, an_error_after_a_document_was_removed_does_not_hide_that_it_was) {
  documents.removes_without_version = true;
  apply({request(Verb::acquire, 1, "a")});
  std::vector<Request> batch{request(Verb::release, 1, "a")};
  for (std::uint64_t i = 2; i <= 8; ++i) {
    batch.push_back(request(Verb::get, i, "a"));
  }
  batch.push_back(request(Verb::acquire, 10, "b"));
  documents.before_commit = [&] {
    documents.before_commit = [&] { documents.fails = Error{.message = "down"}; };
  };
  const auto replies = loop.apply(batch, BootClock::now() + std::chrono::seconds(10));
  ASSERT_TRUE(replies) << "nothing is known of the release that was written";
  EXPECT_EQ(replies->front().outcome, Outcome::done);
  EXPECT_EQ(replies->back().outcome, Outcome::busy);
}

}  // namespace
}  // namespace baton::store
