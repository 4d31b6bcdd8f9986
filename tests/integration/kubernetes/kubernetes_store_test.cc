// What the Kubernetes store does to its Leases, and what others may do to them.

#include <utility>

#include "baton/kubernetes_store.h"
#include "core/lock_table.h"
#include "integration/kubernetes/kubernetes_support.h"
#include "json/json.h"
#include "store/kubernetes/find.h"
#include "store/kubernetes/object_name.h"

namespace baton::test {
namespace {

using nlohmann::json;
using store::kubernetes::object_name;

class KubernetesStore : public KubernetesTest {
 protected:
  json lease(const std::string& key) {
    const auto answer = server->call("GET", leases() + "/" + object_name(key));
    return answer.ok() ? json::parse(answer.body) : json();
  }
  [[nodiscard]] store::kubernetes::Cluster cluster() const {
    store::kubernetes::Cluster cluster;
    cluster.address = server->address();
    cluster.space = space;
    cluster.tls.ca_file = server->ca_file();
    cluster.token = KubeServer::token("admin");
    return cluster;
  }
  // How often the server was asked so, over all Leases.
  double asked(const std::string& verb) {
    const std::string body = server->call("GET", "/metrics").body;
    double total = 0;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("apiserver_request_total{") &&
          line.find("resource=\"leases\"") != std::string::npos &&
          line.find("verb=\"" + verb + "\"") != std::string::npos) {
        total += std::stod(line.substr(line.rfind(' ')));
      }
    }
    return total;
  }
};

TEST_F(KubernetesStore, a_free_lock_is_one_create_a_renewal_one_update_a_release_one_delete) {
  auto store = open();
  const Request request = acquire(1, kName);
  const auto cost = [&](const std::string& verb, const Request& what, Outcome expected) {
    const double before = asked(verb);
    EXPECT_EQ(outcome(*store, what), expected);
    return asked(verb) - before;
  };
  const double read = asked("GET");
  EXPECT_EQ(cost("POST", request, Outcome::granted), 1);
  EXPECT_EQ(cost("PUT", same_targets(Verb::renew, request), Outcome::granted), 1);
  EXPECT_EQ(cost("DELETE", same_targets(Verb::release, request), Outcome::done), 1);
  EXPECT_LE(asked("GET") - read, 2) << "only the schema is looked at, once a second";
}

TEST_F(KubernetesStore, the_lease_shows_people_who_holds_it) {
  auto store = open();
  Request request = acquire(1, kName);
  request.ttl = Millis(15'500);
  request.change.text = "first";
  ASSERT_EQ(outcome(*store, request), Outcome::granted);
  json shown = lease(kName);
  EXPECT_EQ(shown["spec"]["holderIdentity"], "node-1");
  EXPECT_EQ(shown["spec"]["leaseDurationSeconds"], 16);
  EXPECT_EQ(shown["metadata"]["annotations"]["baton/key"], kName);
  const std::string acquired = shown["spec"]["acquireTime"];
  EXPECT_EQ(outcome(*store, same_targets(Verb::renew, request)), Outcome::granted);
  shown = lease(kName);
  EXPECT_EQ(shown["spec"]["acquireTime"], acquired);
  EXPECT_GE(shown["spec"]["renewTime"].get<std::string>(), acquired);
  // A note stays, so the Lease does; but nobody holds it.
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, request)), Outcome::done);
  shown = lease(kName);
  EXPECT_FALSE(shown["spec"].contains("holderIdentity")) << shown["spec"];
  EXPECT_EQ(outcome(*store, acquire(2, kName)), Outcome::granted);
  EXPECT_EQ(lease(kName)["spec"]["leaseTransitions"], 1);
  // Nothing is left of a name without one.
  EXPECT_EQ(outcome(*store, acquire(3, "DEFAULT:other")), Outcome::granted);
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, acquire(3, "DEFAULT:other"))),
            Outcome::done);
  EXPECT_TRUE(lease("DEFAULT:other").is_null());
}

TEST_F(KubernetesStore, what_others_put_on_a_lease_stays_there) {
  auto store = open();
  const Request request = acquire(1, kName);
  const Token token = ask(*store, request).tokens.at(0);
  json changed = lease(kName);
  changed["metadata"]["labels"]["team"] = "night";
  changed["metadata"]["annotations"]["pager"] = "on \"call\"";
  ASSERT_TRUE(server->call("PUT", leases() + "/" + object_name(kName), changed.dump()).ok());
  EXPECT_EQ(outcome(*store, same_targets(Verb::renew, request)), Outcome::granted);
  const json after = lease(kName);
  EXPECT_EQ(after["metadata"]["labels"]["team"], "night");
  EXPECT_EQ(after["metadata"]["annotations"]["pager"], "on \"call\"");
  // The write of another did not turn back the tokens either.
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, request)), Outcome::done);
  EXPECT_GT(ask(*store, acquire(2, kName)).tokens.at(0), token);
}

TEST_F(KubernetesStore, a_lease_of_another_key_denies_its_name_and_no_other) {
  json foreign = {{"metadata", {{"name", object_name(kName)}}}};
  foreign["metadata"]["annotations"]["baton/key"] = "DEFAULT:twin";
  server->create(leases(), foreign.dump());
  auto store = open();
  const Request requests[] = {acquire(1, kName), acquire(2, "DEFAULT:fine")};
  const auto replies = store->apply(requests, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::denied);
  EXPECT_NE(replies->at(0).message.find("DEFAULT:twin"), std::string::npos)
      << replies->at(0).message;
  EXPECT_EQ(replies->at(1).outcome, Outcome::granted);
}

TEST_F(KubernetesStore, a_damaged_document_is_no_free_lock) {
  auto store = open();
  ASSERT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  json damaged = lease(kName);
  damaged["metadata"]["annotations"]["baton/document"] = "{\"holders\":[]}";
  ASSERT_TRUE(server->call("PUT", leases() + "/" + object_name(kName), damaged.dump()).ok());
  EXPECT_EQ(outcome(*store, acquire(2, kName)), Outcome::denied);
  EXPECT_EQ(outcome(*open(), acquire(3, kName)), Outcome::denied);
  EXPECT_NE(store->find({}, soon()).value().items.at(0).damage, "");
}

TEST_F(KubernetesStore, a_lease_deleted_by_hand_is_lost_and_not_made_again) {
  auto store = open();
  const Request request = acquire(1, kName);
  const Token token = ask(*store, request).tokens.at(0);
  ASSERT_TRUE(server->call("DELETE", leases() + "/" + object_name(kName)).ok());
  EXPECT_EQ(outcome(*store, same_targets(Verb::renew, request)), Outcome::lost);
  EXPECT_TRUE(lease(kName).is_null());
  const Reply next = ask(*store, acquire(2, kName));
  ASSERT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.tokens.at(0), token);
}

TEST_F(KubernetesStore, a_release_does_not_delete_a_successors_lease) {
  auto time = std::make_shared<ManualTime>();
  auto slow = open_at(time);
  auto quick = open_at(time);
  ASSERT_EQ(outcome(*slow, acquire(1, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*quick, acquire(2, kName)), Outcome::busy);
  time->advance(kTtl);
  EXPECT_EQ(outcome(*quick, acquire(2, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*slow, same_targets(Verb::release, acquire(1, kName))), Outcome::lost);
  EXPECT_EQ(lease(kName)["spec"]["holderIdentity"], "node-2");
}

TEST_F(KubernetesStore, a_lease_that_is_not_the_one_that_was_read_is_not_deleted) {
  using Fate = store::kubernetes::Written::Fate;
  store::kubernetes::LeaseApi api(cluster(), {.here = [this] { return standing->now(); }});
  const auto print = [&](const std::string& holder, const store::kubernetes::LeaseObject* old) {
    return print_lease(kName, "{}", {}, {.holder = holder}, old);
  };
  const auto remove = [&](const store::kubernetes::LeaseObject& lease) {
    return api.remove(lease, soon()).value().fate;
  };
  const auto old = api.create(print("ours", nullptr), soon()).value().lease;
  const auto changed = api.update(old.name, print("theirs", &old), soon()).value().lease;
  ASSERT_EQ(changed.uid, old.uid);
  EXPECT_EQ(remove(old), Fate::conflict) << "somebody else has written since";
  EXPECT_EQ(lease(kName)["spec"]["holderIdentity"], "theirs");
  EXPECT_EQ(remove(changed), Fate::done);
  EXPECT_TRUE(lease(kName).is_null());

  auto next = api.create(print("next", nullptr), soon()).value().lease;
  const std::string uid = std::exchange(next.uid, old.uid);
  EXPECT_EQ(remove(next), Fate::conflict) << "another one of that name";
  EXPECT_EQ(lease(kName)["spec"]["holderIdentity"], "next");
  next.uid = uid;
  EXPECT_EQ(remove(next), Fate::done);
}

TEST_F(KubernetesStore, tokens_grow_whoever_grants_and_however) {
  auto one = open();
  auto two = open();
  Token last = 0;
  const auto grown = [&](const Reply& reply) {
    ASSERT_EQ(reply.outcome, Outcome::granted);
    EXPECT_GT(reply.tokens.at(0), last);
    last = reply.tokens[0];
  };
  for (std::uint64_t i = 1; i < 20; i += 4) {
    LockStore& a = i % 8 == 1 ? *one : *two;
    LockStore& b = i % 8 == 1 ? *two : *one;
    grown(ask(a, acquire(i, kName, Mode::S)));
    EXPECT_EQ(outcome(b, acquire(i + 1, kName, Mode::X, kQueueTtl)), Outcome::queued);
    Request up = same_targets(Verb::convert, acquire(i, kName, Mode::X));
    grown(ask(a, up));
    EXPECT_EQ(ask(a, same_targets(Verb::renew, up)).tokens.at(0), last);
    EXPECT_EQ(outcome(a, same_targets(Verb::release, up)), Outcome::done);
    // A watch of the Lease tells of it a moment later.
    Reply claimed;
    EXPECT_TRUE(poll_until([&] {
      claimed = ask(b, same_targets(Verb::claim, acquire(i + 1, kName)));
      return claimed.outcome != Outcome::queued;
    }));
    grown(claimed);
    EXPECT_EQ(outcome(b, same_targets(Verb::release, acquire(i + 1, kName))), Outcome::done);
    EXPECT_TRUE(lease(kName).is_null());
  }
}

TEST_F(KubernetesStore, waiters_beyond_what_a_lease_can_hold_are_busy) {
  auto store = open();
  ASSERT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  std::vector<Request> batch;
  for (std::uint64_t i = 2; i <= 200; ++i) {
    batch.push_back(acquire(i, kName, Mode::X, Millis(60'000)));
    batch.back().metadata = {{"purpose", std::string(4000, '"')}};
  }
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  const auto queued = std::count_if(replies->begin(), replies->end(), [](const Reply& reply) {
    return reply.outcome == Outcome::queued;
  });
  const auto busy = std::count_if(replies->begin(), replies->end(), [](const Reply& reply) {
    return reply.outcome == Outcome::busy;
  });
  EXPECT_GT(queued, 10);
  EXPECT_EQ(queued + busy, 199);
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  EXPECT_EQ(outcome(*store, same_targets(Verb::claim, batch[0])), Outcome::granted);
}

TEST_F(KubernetesStore, a_note_too_large_for_an_annotation_is_refused_and_harms_nobody) {
  auto store = open();
  Request schema = acquire(1, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 1, .text = std::string(kMaxReservedNoteBytes - 100, 'x')};
  const Request requests[] = {schema, acquire(2, kName)};
  const auto replies = store->apply(requests, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::unsupported);
  EXPECT_EQ(replies->at(1).outcome, Outcome::granted);
}

TEST_F(KubernetesStore, many_leases_are_renewed_in_one_batch) {
  auto store = open();
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    batch.push_back(acquire(i, "DEFAULT:many:" + std::to_string(i)));
  }
  for (int round = 0; round < 2; ++round) {
    const auto replies = store->apply(batch, soon());
    ASSERT_TRUE(replies) << replies.error().message;
    for (const Reply& reply : *replies) EXPECT_EQ(reply.outcome, Outcome::granted);
    for (Request& request : batch) request = same_targets(Verb::renew, request);
  }
}

TEST_F(KubernetesStore, a_schema_change_reaches_every_client_before_it_is_answered) {
  auto changer = open();
  auto other = open();
  ASSERT_EQ(outcome(*other, acquire(1, kName)), Outcome::granted);
  Request schema = acquire(2, std::string(core::kSchemaKey));
  schema.change.ordinal = 1;
  ASSERT_EQ(outcome(*changer, schema), Outcome::granted);
  EXPECT_EQ(outcome(*other, acquire(3, "DEFAULT:new")), Outcome::denied);
  EXPECT_TRUE(lease("DEFAULT:new").is_null());
  EXPECT_EQ(outcome(*other, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
}

TEST_F(KubernetesStore, leases_of_the_dead_are_swept_and_no_others) {
  std::atomic<std::int64_t> seconds = 1'800'000'000;
  const auto server_time = [&] { return std::chrono::seconds(seconds.load()); };
  const auto time = std::make_shared<ManualTime>();
  auto store = open({.now = [time] { return time->now(); }, .server_time = server_time});
  Request noted = acquire(1, "DEFAULT:noted");
  noted.change.text = "kept";
  EXPECT_EQ(outcome(*store, noted), Outcome::granted);
  EXPECT_EQ(outcome(*store, acquire(2, "DEFAULT:dead")), Outcome::granted);
  seconds += 15;
  time->advance(Millis(5'000));
  EXPECT_EQ(outcome(*store, acquire(3, kName)), Outcome::granted);
  seconds += 6;
  store::kubernetes::LeaseApi api(cluster(),
                                  {.here = [time] { return time->now(); }, .server = server_time});
  store::kubernetes::NameCache cache;
  EXPECT_EQ(sweep_locks(api, cache, soon()).value(), 1U);
  EXPECT_TRUE(lease("DEFAULT:dead").is_null());
  EXPECT_FALSE(lease("DEFAULT:noted").is_null());
  EXPECT_FALSE(lease(kName).is_null());
}

TEST_F(KubernetesStore, the_admin_looks_and_has_nothing_to_migrate) {
  auto store = open();
  ask(*store, acquire(1, kName));
  ask(*store, acquire(2, kName, Mode::X, kQueueTtl));
  auto admin = open_kubernetes_admin(server->store_url("admin", space), soon()).value();
  const auto status = admin->status(soon());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->location, "k8s://" + space);
  const auto detail = [&](const std::string& name) {
    for (const auto& [key, value] : status->details) {
      if (key == name) return value;
    }
    return std::string("none");
  };
  EXPECT_NE(detail("server").find("v1."), std::string::npos) << detail("server");
  EXPECT_EQ(detail("held"), "1");
  EXPECT_EQ(detail("waiters"), "1");
  EXPECT_EQ(admin->migrate(soon()).value(), (std::pair{1, 1}));
  EXPECT_EQ(admin->raise_tokens(7, soon()).error().code, Code::unsupported);
}

}  // namespace
}  // namespace baton::test
