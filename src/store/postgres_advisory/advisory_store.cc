#include "store/postgres_advisory/advisory_store.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

#include "core/apply.h"
#include "store/common/contained.h"
#include "store/common/subscribers.h"
#include "store/postgres_advisory/schema.h"
#include "store/postgres_advisory/session_watcher.h"
#include "store/postgres_advisory/verbs.h"

namespace baton::store {
namespace {

using namespace postgres_advisory;  // NOLINT(google-build-using-namespace): its own parts
using postgres::Connection;

constexpr int kOldestServer = 14;  // the first with idle_session_timeout

Result<void> check_server(Connection& connection, const AdvisorySettings& settings,
                          Deadline deadline) {
  const auto pooled = connection.behind_transaction_pool(deadline);
  if (!pooled) return pooled.error();
  if (*pooled) {
    return Error{
        .code = Code::bad_store,
        .message = settings.server.location +
                   " is behind a transaction-pooling proxy, which would give one session's "
                   "locks to another: give the server's own address, or a pool in session "
                   "mode"};
  }
  auto version =
      connection.script("SELECT current_setting('server_version_num')::int / 10000", deadline);
  if (!version) return version.error();
  int number = 0;
  const std::string_view text = version->text(0, 0);
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (number < kOldestServer) {
    return Error{.code = Code::bad_store,
                 .message =
                     "postgres-advisory: needs PostgreSQL 14 or newer for its "
                     "idle_session_timeout; this is " +
                     std::string(text)};
  }
  return postgres::check_schema(connection, settings.server, deadline, kPlan);
}

// How many of the first requests are `verb` and have nothing to do with each other. The schema's
// name has to do with all.
std::size_t of_different_names(std::span<const Request* const> requests, Verb verb) {
  std::set<std::string_view> keys{core::kSchemaKey};
  const auto other = std::find_if(requests.begin(), requests.end(), [&](const Request* request) {
    return request->verb != verb || !keys.insert(request->targets[0].key).second;
  });
  return static_cast<std::size_t>(other - requests.begin());
}

class PostgresAdvisoryStore final : public LockStore {
 public:
  PostgresAdvisoryStore(AdvisorySettings settings, std::function<core::StoreTime()> now)
      : settings_(std::move(settings)),
        queries_(settings_),
        pool_(settings_),
        grants_(settings_, queries_, pool_, std::move(now)),
        watcher_(settings_, mutex_, grants_, [this](const auto& wakes) { deliver(wakes); }) {}

  Result<void> open(Deadline deadline) {
    auto connection = Connection::open(settings_.server, deadline);
    if (!connection) return connection.error();
    if (auto fit = check_server(**connection, settings_, deadline); !fit) return fit;
    queries_.adopt(std::move(*connection));
    (void)queries_.sweep(deadline);
    return {};
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    std::vector<Reply> replies(batch.size());
    std::vector<const Request*> good;
    std::vector<Reply*> answers;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (auto rule = core::broken_rule(batch[i])) {
        replies[i].message = std::move(*rule);
      } else if (auto beyond = core::beyond(capabilities(), batch[i])) {
        replies[i].outcome = Outcome::unsupported;
        replies[i].message = std::move(*beyond);
      } else {
        good.push_back(&batch[i]);
        answers.push_back(&replies[i]);
      }
    }
    if (good.empty()) return replies;
    auto done =
        contained(settings_.server.location, [&] { return apply_good(good, answers, deadline); });
    if (!done) return done.error();
    return replies;
  }

  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return contained(settings_.server.location, [&]() -> Result<Page<LockInfo>> {
      std::unique_lock lock(mutex_, std::defer_lock);
      if (!lock_until(lock, deadline)) return too_busy();
      return find_locked(query, deadline);
    });
  }

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return subscribers_->add(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.modes = {Mode::S, Mode::X};
    can.convert = false;
    can.transfer = false;
    can.max_set = 1;
    can.max_waiters = settings_.max_waiters;
    can.apply_limit = settings_.server.apply_limit;
    can.clock = "the server's idle-session timer, and CLOCK_BOOTTIME here";
    return can;
  }

 private:
  static bool lock_until(std::unique_lock<TimedMutex>& lock, Deadline deadline) {
    return lock.try_lock_for(std::max(deadline - BootClock::now(), Deadline::duration::zero()));
  }

  [[nodiscard]] Error too_busy() const {
    return Error{.code = Code::unavailable,
                 .message = "the sessions with " + settings_.server.location + " do not answer",
                 .retryable = true};
  }

  void deliver(const std::vector<core::Wake>& wakes) {
    for (const auto& wake : wakes) subscribers_->wake(wake.channel, {&wake.grant, 1});
  }

  Result<void> apply_good(const std::vector<const Request*>& good,
                          const std::vector<Reply*>& answers, Deadline deadline) {
    // A request that is begun by send_by has taken effect by the limit, or never will. By a test's
    // clock no time passes here.
    const auto within = [&, entered = BootClock::now()](Millis span) {
      return settings_.timers ? std::min(deadline, entered + span) : deadline;
    };
    const Deadline limit = within(settings_.server.apply_limit);
    const Deadline send_by = within(settings_.server.send_limit());
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!lock_until(lock, limit)) return too_busy();
    const std::size_t needed = sessions_needed(good);
    lock.unlock();
    std::vector<std::unique_ptr<Session>> sessions;
    std::optional<Error> shortage;
    // A new session that comes too late for this batch is there for the next.
    const Deadline enough = within(settings_.server.send_limit() / 2);
    if (auto drawn = pool_.draw(needed, sessions, enough, deadline); !drawn) {
      shortage = drawn.error();
    }
    if (!lock_until(lock, limit)) {
      for (auto& unused : sessions) pool_.give_back(std::move(unused));
      return too_busy();
    }
    Verbs verbs(settings_, grants_, queries_, send_by, limit);
    verbs.give_sessions(std::move(sessions), std::move(shortage));
    auto done = run(verbs, good, answers);
    for (const Request* request : good) grants_.table().tidy(request->targets[0].key);
    const auto wakes = grants_.take_wakes();
    lock.unlock();
    for (auto& unused : verbs.unused_sessions()) pool_.give_back(std::move(unused));
    watcher_.look_again();
    deliver(wakes);
    return done;
  }

  // An acquire that knows nothing of its grant yet may want one.
  [[nodiscard]] std::size_t sessions_needed(const std::vector<const Request*>& requests) {
    std::set<std::pair<std::string, GrantId>> wanted;
    for (const Request* request : requests) {
      const std::string& key = request->targets[0].key;
      if (request->verb == Verb::acquire && !grants_.table().find(key, request->grant)) {
        wanted.emplace(key, request->grant);
      }
    }
    return wanted.size();
  }

  // One request that fails is answered busy, so that the others have their replies; it is an error
  // only if none has one, or if what failed may have happened all the same.
  Result<void> run(Verbs& verbs, const std::vector<const Request*>& requests,
                   const std::vector<Reply*>& answers) {
    if (auto looked = verbs.look_ahead(requests); !looked) return looked;
    std::optional<Error> problem;
    bool answered = false;
    for (std::size_t i = 0; i < requests.size();) {
      std::size_t to = i;
      while (to < requests.size() && requests[to]->verb == Verb::renew) ++to;
      if (to > i) {
        std::vector<Reply*> some(answers.begin() + static_cast<std::ptrdiff_t>(i),
                                 answers.begin() + static_cast<std::ptrdiff_t>(to));
        auto renewed = verbs.renew({requests.data() + i, to - i}, some);
        if (!renewed) problem = renewed.error();
        answered = true;
        i = to;
        continue;
      }
      const std::span<const Request* const> rest(requests.data() + i, requests.size() - i);
      std::vector<Result<Reply>> replies;
      if (const auto count = of_different_names(rest, Verb::acquire); count > 0) {
        replies = verbs.acquire(rest.first(count));
      } else if (const auto ends = of_different_names(rest, Verb::release); ends > 0) {
        replies = verbs.release(rest.first(ends));
      } else {
        replies.push_back(verbs.apply(*requests[i]));
      }
      for (auto& reply : replies) {
        if (reply) {
          *answers[i] = std::move(*reply);
          answered = true;
        } else {
          answers[i]->outcome = Outcome::busy;
          answers[i]->message = reply.error().message;
          if (!problem || reply.error().in_doubt) problem = reply.error();
        }
        ++i;
      }
    }
    if (problem && (!answered || problem->in_doubt)) return *problem;
    return {};
  }

  Result<Page<LockInfo>> find_locked(const Query& query, Deadline deadline) {
    constexpr std::size_t kRows = 500;
    const std::string prefix = core::key_prefix(query);
    const std::size_t limit = std::max<std::size_t>(query.limit, 1);
    Page<LockInfo> page;
    std::string after = query.after;
    for (;;) {
      auto keys = queries_.names(prefix, after, query.idle, kRows, deadline);
      if (!keys) return keys.error();
      const bool last = keys->size() < kRows;
      std::set<std::string> all(keys->begin(), keys->end());
      for (const auto& [key, name] : grants_.table().names()) {
        const bool here = last || key <= keys->back();
        if (key > after && here && key.starts_with(prefix)) all.insert(key);
      }
      const std::vector<std::string> ordered(all.begin(), all.end());
      if (ordered.empty()) return page;
      auto seen = queries_.look(ordered, grants_.now(), grants_.at(), deadline);
      if (!seen) return seen.error();
      for (const auto& key : ordered) {
        LockInfo info = core::describe(key, grants_.table().name_state(key, seen->at(key)),
                                       grants_.now(), ~std::size_t{0});
        if (!core::matches(query, info)) continue;
        if (page.items.size() == limit) {
          page.next = page.items.back().key;
          return page;
        }
        if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
        page.items.push_back(std::move(info));
      }
      if (last) return page;
      after = ordered.back();
    }
  }

  const AdvisorySettings settings_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
  TimedMutex mutex_;
  ServerQueries queries_;
  SessionPool pool_;
  Grants grants_;
  SessionWatcher watcher_;
};

}  // namespace

Result<std::unique_ptr<LockStore>> open_postgres_advisory_store(PostgresAdvisoryOptions options,
                                                                Deadline deadline) {
  auto settings = parse_advisory_url(options.url);
  if (!settings) return settings.error();
  settings->timers = !options.now;
  auto store =
      std::make_unique<PostgresAdvisoryStore>(std::move(*settings), std::move(options.now));
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_postgres_advisory_store(std::string_view url,
                                                                Deadline deadline) {
  return store::open_postgres_advisory_store({.url = std::string(url)}, deadline);
}

}  // namespace baton
