// An acquire that its caller does not wait for inside the call.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

#include "capi/client.h"
#include "capi/event_fd.h"
#include "capi/held.h"
#include "capi/wait.h"

namespace baton::capi {
namespace {

// Shared with the client, which answers on a thread of its own.
class Answer {
 public:
  void set(Result<Lease> result) {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return;  // the lease goes with the argument: it is released
    result_ = std::move(result);
    arrived_.notify_all();
    event_.fire();
  }

  Result<int> fd() {
    const std::lock_guard lock(mutex_);
    const bool fresh = !event_.is_open();
    if (auto opened = event_.open(); !opened) return opened.error();
    if (fresh && result_) event_.fire();
    return event_.fd();
  }

  int take(Millis timeout, baton_lease** lease, baton_error* error) {
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, end_of(timeout), [&] { return result_.has_value(); });
    if (!result_) return told(error, BATON_PENDING, "the acquire has no answer yet");
    if (!*result_) return told(error, result_->error());
    if (taken_) return told(error, bad_request("the lease of this request has been taken"));
    *lease = new_lease(std::move(**result_));
    taken_ = true;
    return done(error);
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (result_ && *result_ && !taken_) {
      (*result_)->release_async();
      taken_ = true;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<Result<Lease>> result_;
  EventFd event_;
  bool taken_ = false;
  bool abandoned_ = false;
};

// What a baton_request stands for.
struct Request {
  static constexpr Kind kKind = Kind::request;
  std::shared_ptr<Client> client;  // goes on until the answer is there
  std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  std::stop_source stop;

  explicit Request(std::shared_ptr<Client> its) : client(std::move(its)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    try {
      answer->abandon();
      stop.request_stop();
    } catch (...) {  // NOLINT: out of memory; the lock expires
    }
  }
};

}  // namespace
}  // namespace baton::capi

extern "C" {

using namespace baton::capi;  // NOLINT(google-build-using-namespace): the functions are the API

int baton_acquire_async(baton_client* client, const char* const* names, size_t count,
                        const baton_acquire_options* options, baton_request** request,
                        baton_error* error) noexcept {
  return guarded(error, [&] {
    if (request == nullptr) {
      return told(error, baton::bad_request("there is nowhere to put the request"));
    }
    *request = nullptr;
    auto found = object_of<Client>(client);
    if (!found) return told(error, found.error());
    auto asked = read_acquire(names, count, options);
    if (!asked) return told(error, asked.error());
    const auto made = std::make_shared<Request>(std::move(*found));
    asked->options.stop = made->stop.get_token();
    *request = new_handle<baton_request>(made);
    made->client->locks.acquire_async(std::move(asked->names), std::move(asked->options),
                                      [answer = made->answer](baton::Result<baton::Lease> result) {
                                        answer->set(std::move(result));
                                      });
    return done(error);
  });
}

int baton_request_fd(baton_request* request, int* fd, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto found = object_of<Request>(request);
    if (!found) return told(error, found.error());
    return give_fd((*found)->answer->fd(), fd, error);
  });
}

int baton_request_take(baton_request* request, int64_t timeout_ms, baton_lease** lease,
                       baton_error* error) noexcept {
  return guarded(error, [&] {
    if (lease == nullptr) {
      return told(error, baton::bad_request("there is nowhere to put the lease"));
    }
    *lease = nullptr;
    const auto found = object_of<Request>(request);
    if (!found) return told(error, found.error());
    return (*found)->answer->take(baton::Millis(timeout_ms), lease, error);
  });
}

int baton_request_cancel(baton_request* request, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto found = object_of<Request>(request);
    if (!found) return told(error, found.error());
    (*found)->stop.request_stop();
    return done(error);
  });
}

int baton_request_free(baton_request* request, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto freed = take_object<Request>(request);
    if (!freed) return told(error, freed.error());
    // Also if another thread waits for it at this moment.
    if (*freed) (*freed)->stop.request_stop();
    return done(error);
  });
}

}  // extern "C"
