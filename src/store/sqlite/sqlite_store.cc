#include "store/sqlite/sqlite_store.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/apply.h"
#include "core/document.h"
#include "store/sqlite/batch.h"
#include "store/sqlite/location.h"
#include "store/sqlite/lock_file.h"
#include "store/sqlite/wake_files.h"

namespace baton::store {
namespace {

using namespace sqlite;
using core::StoreTime;

// After this many rows that nobody has removed again, as many more are looked at for such as have
// only expired.
constexpr int kSweepEvery = 64;
constexpr int kSweepRows = 2 * kSweepEvery;

constexpr std::chrono::hours kLongestWait(1);

// A connection and the queue of threads for it. One writes for all threads; another one reads, so
// that a long find keeps no batch waiting.
class ConnectionQueue {
 public:
  // The connection for one caller, until the end of the scope.
  class Borrowed {
   public:
    explicit Borrowed(ConnectionQueue& queue) : queue_(&queue) {}
    Borrowed(Borrowed&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed() {
      if (queue_ == nullptr) return;
      {
        const std::lock_guard lock(queue_->mutex_);
        queue_->taken_ = false;
      }
      queue_->freed_.notify_one();
    }

   private:
    ConnectionQueue* queue_;
  };

  [[nodiscard]] std::optional<Borrowed> take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    // Bounded, because a deadline may be the end of time.
    const auto left = std::min<BootClock::duration>(deadline - BootClock::now(), kLongestWait);
    if (!freed_.wait_for(lock, left, [&] { return !taken_; })) return {};
    taken_ = true;
    return Borrowed(*this);
  }

  std::unique_ptr<LockFile> file;  // opened when first needed, by a borrower

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool taken_ = false;
};

class SqliteStore final : public LockStore {
 public:
  SqliteStore(std::string path, Machine machine, std::shared_ptr<WakeFiles> wake_files, bool wakes)
      : path_(std::move(path)),
        machine_(std::move(machine)),
        wake_files_(std::move(wake_files)),
        wakes_(wakes) {}

  // Opens the writing connection and makes the file one of this boot.
  [[nodiscard]] Result<void> open(Deadline deadline);

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override;
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override;

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return wake_files_->watch(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.batched_gets = true;
    can.clock = "this machine (CLOCK_BOOTTIME, by boot id)";
    return can;
  }

 private:
  [[nodiscard]] Result<ConnectionQueue::Borrowed> take(ConnectionQueue& queue, Deadline deadline);
  [[nodiscard]] Result<LockFile::State> enter(LockFile& file) const;
  [[nodiscard]] Result<std::vector<Reply>> change(std::span<const Request> batch, Deadline deadline,
                                                  std::vector<core::Wake>& wakes);
  [[nodiscard]] Result<void> adopt(Deadline deadline);
  [[nodiscard]] Result<void> sweep(LockFile& file, std::string_view near, StoreTime now);

  // Runs `look(file, now)` in a read transaction.
  template <typename Answer, typename Look>
  [[nodiscard]] Result<Answer> read(Deadline deadline, Look look);

  const std::string path_;
  const Machine machine_;
  const std::shared_ptr<WakeFiles> wake_files_;
  const bool wakes_;
  ConnectionQueue writer_;
  ConnectionQueue reader_;

  // Used with writer_ borrowed. The first batch sweeps what earlier processes left.
  int unswept_ = kSweepEvery;
  std::string sweep_from_;
};

// Nothing takes effect later than capabilities().apply_limit after it was sent.
Deadline bounded(Deadline deadline) {
  return std::min(deadline, BootClock::now() + BootClock::duration(Capabilities{}.apply_limit));
}

Error too_late(const std::string& path) {
  return {.code = Code::unavailable,
          .message = path + " did not answer before the deadline",
          .retryable = true};
}

Result<ConnectionQueue::Borrowed> SqliteStore::take(ConnectionQueue& queue, Deadline deadline) {
  auto borrowed = queue.take(deadline);
  if (!borrowed) return too_late(path_);
  if (queue.file == nullptr) {
    auto file = LockFile::open(path_, machine_, deadline);
    if (!file) return file.error();
    queue.file = std::move(*file);
  }
  queue.file->database().wait_until(deadline);
  return std::move(*borrowed);
}

// Since open() the file is one of this boot, and a reboot would have ended this process. Another
// boot id now is that of a container which shares the clock; to adopt its times, and it ours, would
// let no grant ever end.
Result<LockFile::State> SqliteStore::enter(LockFile& file) const {
  auto state = file.enter();
  if (!state || !state->other_boot) return state;
  return Error{.code = Code::bad_store,
               .message = path_ + " is used under two boot ids at once, one of them " +
                          machine_.boot_id + ": run all its users where they see the machine's " +
                          "own, or use another store"};
}

Result<void> SqliteStore::open(Deadline deadline) {
  bool other_boot = false;
  {
    auto borrowed = take(writer_, deadline);
    if (!borrowed) return borrowed.error();
    auto transaction = Transaction::begin(writer_.file->database(), Transaction::Kind::read);
    if (!transaction) return transaction.error();
    auto state = writer_.file->enter();
    if (!state) return state.error();
    other_boot = state->other_boot;
  }
  return other_boot ? adopt(deadline) : Result<void>();
}

Result<void> SqliteStore::adopt(Deadline deadline) {
  auto borrowed = take(writer_, deadline);
  if (!borrowed) return borrowed.error();
  LockFile& file = *writer_.file;
  auto transaction = Transaction::begin(file.database(), Transaction::Kind::write);
  if (!transaction) return transaction.error();
  auto state = file.enter();
  if (!state) return state.error();
  if (!state->other_boot) return {};
  if (auto adopted = file.adopt(machine_.now()); !adopted) return adopted;
  return transaction->commit();
}

Result<std::vector<Reply>> SqliteStore::apply(std::span<const Request> batch, Deadline deadline) {
  deadline = bounded(deadline);
  const bool only_looks =
      std::all_of(batch.begin(), batch.end(), [](const Request& r) { return r.verb == Verb::get; });
  if (only_looks) {
    return read<std::vector<Reply>>(
        deadline, [&](LockFile& file, StoreTime now) -> Result<std::vector<Reply>> {
          BatchRun looks(file, now, 0);
          std::vector<Reply> replies;
          for (const Request& request : batch) {
            auto reply = looks.apply(request);
            if (!reply) return reply.error();
            replies.push_back(std::move(*reply));
          }
          return replies;
        });
  }
  std::vector<core::Wake> wakes;
  auto replies = change(batch, deadline, wakes);
  // Outside the lock: a sink may be taking its own locks.
  if (wakes_ && !wakes.empty()) wake_files_->wake(std::move(wakes));
  return replies;
}

Result<std::vector<Reply>> SqliteStore::change(std::span<const Request> batch, Deadline deadline,
                                               std::vector<core::Wake>& wakes) {
  auto borrowed = take(writer_, deadline);
  if (!borrowed) return borrowed.error();
  LockFile& file = *writer_.file;
  auto transaction = Transaction::begin(file.database(), Transaction::Kind::write);
  if (!transaction) return transaction.error();
  // Read while all others are kept out, so that it never goes back from one batch to the next.
  const StoreTime now = machine_.now();
  auto state = enter(file);
  if (!state) return state.error();

  BatchRun run(file, now, state->counter);
  std::vector<Reply> replies;
  replies.reserve(batch.size());
  for (const Request& request : batch) {
    auto reply = run.apply(request);
    if (!reply) return reply.error();
    replies.push_back(std::move(*reply));
  }
  auto wrote = run.write_back();
  if (!wrote) return wrote.error();
  if (!*wrote) {
    wakes = std::move(run.effects().wakes);
    return replies;
  }
  const int unswept = std::max(0, unswept_ + run.rows_added());
  if (unswept >= kSweepEvery) {
    if (auto swept = sweep(file, batch[0].targets.empty() ? "" : batch[0].targets[0].key, now);
        !swept) {
      return swept.error();
    }
  }
  if (BootClock::now() >= deadline) return too_late(path_);
  if (auto committed = transaction->commit(); !committed) return committed.error();
  unswept_ = unswept >= kSweepEvery ? 0 : unswept;
  wakes = std::move(run.effects().wakes);
  if (run.must_sync()) {
    if (auto synced = file.database().sync(); !synced) return synced.error();
  }
  return replies;
}

// A grant that expired and whose name nobody asks for again would stay for ever. Goes round the
// table, some rows at a time, and begins beside a name in use: a short-lived process sweeps only
// once, and names that come and go tend to be neighbours.
Result<void> SqliteStore::sweep(LockFile& file, std::string_view near, StoreTime now) {
  if (sweep_from_.empty()) sweep_from_ = near;
  std::vector<std::string> forgotten;
  int looked_at = 0;
  std::string next;
  const auto look = [&](std::string_view key, std::string_view document) {
    if (looked_at == kSweepRows) return next = key, false;
    ++looked_at;
    const auto state = core::from_document(document);
    if (state && core::forgettable(*state, now)) forgotten.emplace_back(key);
    return true;
  };
  if (auto visited = file.visit(sweep_from_, look); !visited) return visited;
  if (next.empty()) {
    if (auto visited = file.visit({}, look); !visited) return visited;
  }
  for (const std::string& key : forgotten) {
    if (auto erased = file.erase(key); !erased) return erased;
  }
  sweep_from_ = next;
  return {};
}

template <typename Answer, typename Look>
Result<Answer> SqliteStore::read(Deadline deadline, Look look) {
  auto borrowed = take(reader_, deadline);
  if (!borrowed) return borrowed.error();
  auto transaction = Transaction::begin(reader_.file->database(), Transaction::Kind::read);
  if (!transaction) return transaction.error();
  auto state = enter(*reader_.file);
  if (!state) return state.error();
  return look(*reader_.file, machine_.now());
}

Result<Page<LockInfo>> SqliteStore::find(const Query& query, Deadline deadline) {
  using Found = Page<LockInfo>;
  const std::string prefix = core::key_prefix(query);
  const std::string first = std::max(prefix, query.after);
  const std::size_t limit = std::max<std::size_t>(query.limit, 1);
  return read<Found>(deadline, [&](LockFile& file, StoreTime now) -> Result<Found> {
    Found page;
    Result<void> fine;
    auto visited = file.visit(first, [&](std::string_view key, std::string_view document) {
      if (!key.starts_with(prefix)) return false;
      if (key == query.after) return true;
      if (BootClock::now() >= deadline) return fine = too_late(path_), false;
      const auto state = core::from_document(document);
      LockInfo info;
      if (state) {
        info = core::describe(std::string(key), *state, now, ~std::size_t{0});
      } else {
        info = {.key = std::string(key), .damage = state.error().message};
      }
      if (!core::matches(query, info)) return true;
      if (page.items.size() == limit) return page.next = page.items.back().key, false;
      if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
      page.items.push_back(std::move(info));
      return true;
    });
    if (!visited) return visited.error();
    if (!fine) return fine.error();
    return page;
  });
}

}  // namespace

Result<std::unique_ptr<LockStore>> open_sqlite_store_with(const SqliteOptions& options,
                                                          Deadline deadline) {
  auto machine = this_machine();
  if (!machine) return machine.error();
  if (options.now) machine->now = options.now;
  if (!options.boot_id.empty()) machine->boot_id = options.boot_id;
  if (!options.time_namespace.empty()) machine->time_namespace = options.time_namespace;
  if (auto prepared = prepare_file(options.path, options.filesystem); !prepared) {
    return prepared.error();
  }
  const std::string path = without_links(options.path);
  auto wake_files = std::make_shared<WakeFiles>(path + "-wake", access_of(path));
  auto store = std::make_unique<SqliteStore>(path, std::move(*machine), std::move(wake_files),
                                             !options.drop_wakeups);
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_sqlite_store(std::string_view url, Deadline deadline) {
  auto path = store::sqlite::path_of(url);
  if (!path) return path.error();
  return store::open_sqlite_store_with({.path = *path}, deadline);
}

}  // namespace baton
