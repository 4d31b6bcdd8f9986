#include "baton/processors.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "baton/elector.h"
#include "baton/partitions.h"
#include "core/bad_request.h"
#include "eventlog/processor_worker.h"
#include "eventlog/view_tables.h"

namespace baton {
namespace eventlog {

class ProcessorSet {
 public:
  ProcessorSet(LockClient locks, std::string database, std::string module,
               ProcessorsOptions options)
      : locks_(std::move(locks)),
        database_(std::move(database)),
        module_(std::move(module)),
        options_(std::move(options)) {}

  Result<void> add(ProcessorSpec spec) {
    const bool taken = std::any_of(specs_.begin(), specs_.end(),
                                   [&](const auto& other) { return other.name == spec.name; });
    if (taken) return bad_request("there is a processor " + spec.name + " already");
    if (!spec.handler) return bad_request("the processor " + spec.name + " has no handler");
    for (const auto& table : spec.tables) {
      if (auto ok = check_identifier("the table", table); !ok) return ok;
    }
    specs_.push_back(std::move(spec));
    return {};
  }

  // Tells stop() when run() has returned.
  class Running {
   public:
    explicit Running(ProcessorSet& set) : set_(set) { count(1); }
    ~Running() { count(-1); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    void count(int change) {
      const std::lock_guard lock(set_.mutex_);
      set_.running_ += change;
      set_.ended_.notify_all();
    }
    ProcessorSet& set_;
  };

  Result<void> run(const std::stop_token& outer) {
    const Running running(*this);
    if (specs_.empty()) return bad_request("there are no processors to run");
    if (options_.batch == 0 || options_.batch > kMaxAppend || options_.max_attempts < 1 ||
        options_.poll_interval < Millis(1) || options_.handler_timeout < Millis(1)) {
      return bad_request("an option of Processors is out of range");
    }
    const std::stop_callback forward(outer, [this] { stop_.request_stop(); });
    const auto on_error = [this](const Error& error) {
      if (options_.on_error) options_.on_error(module_, error);
    };
    const std::string name = "processors/" + module_;
    if (options_.ownership == ProcessorOwnership::elected) {
      Elector elector(locks_, name,
                      {.ttl = options_.ttl, .region = options_.region, .on_error = on_error});
      return elector.run(
          [this](Leadership& term, const std::stop_token& stop) {
            work(term.term(), term.tokens(), stop, [](const auto&) { return true; });
          },
          stop_.get_token());
    }
    Partitions partitions(locks_, name, options_.partitions,
                          {.ttl = options_.ttl, .region = options_.region, .on_error = on_error});
    return partitions.run(
        [this](Partition& partition, const std::stop_token& stop) {
          work(partition.token(), partition.tokens(), stop, [&](const ProcessorSpec& spec) {
            return partition_of(spec.name) == partition.number();
          });
        },
        stop_.get_token());
  }

  void stop() {
    stop_.request_stop();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  // FNV-1a: the same in every build.
  [[nodiscard]] std::size_t partition_of(std::string_view name) const {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : name) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    return static_cast<std::size_t>(hash % options_.partitions);
  }

  // A thread for each processor that `mine` takes, until `stop`.
  template <typename Mine>
  void work(Token token, const std::vector<FenceToken>& fence, const std::stop_token& stop,
            Mine mine) {
    std::vector<std::thread> threads;
    for (const ProcessorSpec& spec : specs_) {
      if (!mine(spec)) continue;
      threads.emplace_back([&spec, this, token, &fence, &stop] {
        Registration registration{.name = spec.name,
                                  .kind = spec.kind,
                                  .tables = spec.tables,
                                  .owner = locks_.owner(),
                                  .token = token,
                                  .fence = fence};
        ProcessorWorker(spec, std::move(registration), database_, options_).run(stop);
      });
    }
    wait_for(stop);
    for (auto& thread : threads) thread.join();
  }

  // Also with no processor at all, because work that returns gives its partition up.
  static void wait_for(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, stop, [] { return false; });
  }

  LockClient locks_;
  const std::string database_;
  const std::string module_;
  const ProcessorsOptions options_;
  std::vector<ProcessorSpec> specs_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
};

}  // namespace eventlog

std::span<const LoggedEvent> EventBatch::events() const { return state_.events; }
const std::string& EventBatch::processor() const { return state_.spec->name; }
pg_conn* EventBatch::postgres() const { return state_.connection->postgres(); }
sqlite3* EventBatch::sqlite() const { return state_.connection->sqlite(); }
bool EventBatch::rebuilding() const { return state_.rebuilding; }

std::string EventBatch::table(std::string_view name) const {
  return state_.rebuilding ? eventlog::copy_of(name) : std::string(name);
}

Result<void> EventBatch::publish(const Outbox& outbox, const Event& event) {
  if (state_.rebuilding) return {};
  auto added = postgres() != nullptr ? outbox.add(postgres(), event) : outbox.add(sqlite(), event);
  if (!added) return added.error();
  return {};
}

Processors::Processors(LockClient locks, std::string database, std::string module,
                       ProcessorsOptions options)
    : set_(std::make_shared<eventlog::ProcessorSet>(std::move(locks), std::move(database),
                                                    std::move(module), std::move(options))) {}

Processors::~Processors() { stop(); }

Result<void> Processors::add_view(std::string name, std::vector<std::string> tables,
                                  EventHandler handler) {
  if (auto ok = eventlog::check_identifier("the view", name); !ok) return ok;
  return set_->add({.name = std::move(name),
                    .kind = "view",
                    .tables = std::move(tables),
                    .handler = std::move(handler)});
}

Result<void> Processors::add_publisher(std::string topic, std::string publisher,
                                       EventHandler handler) {
  if (auto ok = eventlog::check_identifier("the topic", topic); !ok) return ok;
  if (auto ok = eventlog::check_identifier("the publisher", publisher); !ok) return ok;
  return set_->add({.name = topic + "." + publisher,
                    .kind = "publisher",
                    .tables = {},
                    .handler = std::move(handler)});
}

Result<void> Processors::run(const std::stop_token& stop) {
  const auto set = set_;
  return set->run(stop);
}

void Processors::stop() { set_->stop(); }

}  // namespace baton
