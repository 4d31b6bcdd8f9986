// Elections without callbacks into the caller: a term waits to be taken, and the work of it has
// ended when its lease is released.
//
//   elector's thread   on_elected: the term is offered ─▶ stop token fires ─▶ on_lost: waits until
//                      the work has ended, if anybody took the term ─▶ the lock is let go
//   callers            take: the term as a lease ─▶ release or free: the work has ended

#include "baton/elector.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include "capi/client.h"
#include "capi/event_fd.h"
#include "capi/held.h"
#include "capi/wait.h"
#include "core/permanent_error.h"

namespace baton::capi {
namespace {

// Whether an elector ends with this error; it goes on after any other.
bool ends_election(const Error& error) {
  return is_permanent(error) || error.code == Code::cancelled;  // cancelled: closed
}

// Fires when the work of a term has to end: at once if the lease is lost, else when the elector
// says so.
class TermEnd {
 public:
  explicit TermEnd(const std::stop_token& lost) : on_loss_(lost, Fire{source_}) {}
  void fire() { source_.request_stop(); }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  struct Fire {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Fire> on_loss_;
};

// Shared by the elector, its handle and the terms that were taken.
class Stand : public std::enable_shared_from_this<Stand> {
 public:
  void elected(Leadership& term) {
    const std::lock_guard lock(mutex_);
    offered_ = term;
    end_ = std::make_shared<TermEnd>(term.lease().lost());
    working_ = false;
    trouble_.clear();
    announce();
  }

  // Returns when nobody works any more.
  void wait_for_work() {
    std::unique_lock lock(mutex_);
    if (offered_ && !over_) event_.reset();
    offered_.reset();
    end_->fire();
    changed_.wait(lock, [&] { return !working_; });
  }

  void closed() { failed({.code = Code::cancelled, .message = "the elector has been closed"}); }

  void failed(const Error& error) {
    const std::lock_guard lock(mutex_);
    trouble_ = error.message;
    if (!ends_election(error)) return;
    over_ = error;
    announce();
  }

  int take(Millis timeout, baton_lease** term, baton_error* error) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, end_of(timeout), [&] { return offered_ || over_; });
    if (over_) return told(error, *over_);
    if (!offered_) return told(error, BATON_PENDING, "this replica does not lead yet");
    *term = new_term(*offered_, end_->token(),
                     [self = shared_from_this(), taken = *offered_, end = end_]() mutable {
                       taken.resign();
                       self->work_ended();
                     });
    offered_.reset();
    working_ = true;
    event_.reset();
    return done(error);
  }

  Result<int> fd() {
    const std::lock_guard lock(mutex_);
    if (event_.is_open()) return event_.fd();
    if (auto opened = event_.open(); !opened) return opened.error();
    if (offered_ || over_) event_.fire();
    return event_.fd();
  }

  std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  void announce() {
    changed_.notify_all();
    event_.fire();
  }

  void work_ended() {
    const std::lock_guard lock(mutex_);
    working_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Leadership> offered_;  // to be taken
  std::shared_ptr<TermEnd> end_;       // of this term
  bool working_ = false;               // it was taken, and its work has not ended
  std::optional<Error> over_;
  std::string trouble_;
  EventFd event_;
};

// What a baton_elector stands for.
struct Candidate {
  static constexpr Kind kKind = Kind::elector;
  std::shared_ptr<Stand> stand;
  std::unique_ptr<Elector> elector;

  Candidate() = default;
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  ~Candidate() {
    if (elector != nullptr) stand->closed();
  }
};

// Only the stand is shared with a call that waits: closing must not have to wait for it.
Result<std::shared_ptr<Stand>> stand_of(baton_elector* elector) {
  const auto found = object_of<Candidate>(elector);
  if (!found) return found.error();
  return (*found)->stand;
}

Result<ElectorOptions> read_elector_options(const baton_elector_options* given) {
  const auto read = read_struct(given, offsetof(baton_elector_options, priority));
  if (!read) return read.error();
  auto metadata = read_pairs(read->metadata, "the metadata");
  if (!metadata) return metadata.error();
  ElectorOptions options;
  options.ttl = millis_or(read->ttl_ms, options.ttl);
  options.grace = millis_or(read->grace_ms, options.grace);
  options.retry_interval = millis_or(read->retry_interval_ms, options.retry_interval);
  options.cooldown = millis_or(read->cooldown_ms, options.cooldown);
  options.region = text_or(read->region, options.region);
  options.metadata = std::move(*metadata);
  if (read->priority != nullptr) options.priority = *read->priority;
  options.preempt = read->preempt != 0;
  options.never_lead = read->never_lead != 0;
  return options;
}

Result<std::shared_ptr<Candidate>> stand_for(const LockClient& locks, const char* election,
                                             ElectorOptions options) {
  auto candidate = std::make_shared<Candidate>();
  candidate->stand = std::make_shared<Stand>();
  options.on_error = [stand = candidate->stand](const Error& error) { stand->failed(error); };
  candidate->elector = std::make_unique<Elector>(locks, election, std::move(options));
  auto started = candidate->elector->start({
      .on_elected = [stand = candidate->stand](Leadership& term) { stand->elected(term); },
      .on_lost = [stand = candidate->stand](Leadership&,
                                            const std::string&) { stand->wait_for_work(); },
  });
  if (!started) return started.error();
  return candidate;
}

}  // namespace
}  // namespace baton::capi

extern "C" {

using namespace baton::capi;  // NOLINT(google-build-using-namespace): the functions are the API

int baton_elect(baton_client* client, const char* election, const baton_elector_options* options,
                baton_elector** elector, baton_error* error) noexcept {
  return guarded(error, [&] {
    if (elector == nullptr) {
      return told(error, baton::bad_request("there is nowhere to put the elector"));
    }
    *elector = nullptr;
    const auto found = object_of<Client>(client);
    if (!found) return told(error, found.error());
    if (election == nullptr) return told(error, baton::bad_request("the election is NULL"));
    auto read = read_elector_options(options);
    if (!read) return told(error, read.error());
    auto candidate = stand_for((*found)->locks, election, std::move(*read));
    if (!candidate) return told(error, candidate.error());
    *elector = new_handle<baton_elector>(std::move(*candidate));
    return done(error);
  });
}

int baton_elector_fd(baton_elector* elector, int* fd, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto stand = stand_of(elector);
    return stand ? give_fd((*stand)->fd(), fd, error) : told(error, stand.error());
  });
}

int baton_elector_take(baton_elector* elector, int64_t timeout_ms, baton_lease** term,
                       baton_error* error) noexcept {
  return guarded(error, [&] {
    if (term == nullptr) {
      return told(error, baton::bad_request("there is nowhere to put the term"));
    }
    *term = nullptr;
    const auto stand = stand_of(elector);
    if (!stand) return told(error, stand.error());
    return (*stand)->take(baton::Millis(timeout_ms), term, error);
  });
}

size_t baton_elector_trouble(baton_elector* elector, char* buffer, size_t size) noexcept {
  return guarded_value<size_t>(0, [&]() -> size_t {
    const auto stand = stand_of(elector);
    return copy_out(stand ? (*stand)->trouble() : "", buffer, size);
  });
}

int baton_elector_close(baton_elector* elector, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto closed = take_object<Candidate>(elector);
    return closed ? done(error) : told(error, closed.error());
  });
}

}  // extern "C"
