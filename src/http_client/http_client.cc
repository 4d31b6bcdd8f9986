#include "http_client/http_client.h"

#include <algorithm>
#include <mutex>

#include "http_client/transfer.h"

namespace baton::http_client {
namespace {

constexpr std::size_t kMostIdle = 8;

struct MultiClose {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
using MultiHandle = std::unique_ptr<CURLM, MultiClose>;

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_ALL);
  (void)started;
}

Error out_of_memory() {
  return {.code = Code::unavailable, .message = "no memory for a connection", .retryable = true};
}

// Runs one transfer until it ends, or `goes_on` says no (then nothing).
template <typename GoesOn>
std::optional<CURLcode> drive(CURLM* multi, int poll_millis, GoesOn goes_on) {
  for (int running = 1; running > 0;) {
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    if (running == 0) break;
    if (!goes_on()) return std::nullopt;
    curl_multi_poll(multi, nullptr, 0, poll_millis, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return CURLE_FAILED_INIT;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string bearer_auth(std::string_view token) { return "Bearer " + std::string(token); }

// Idle handles with their open connections. The one used last is given first, so that a lone caller
// stays on one warm connection.
class HttpClient::Pool {
 public:
  CurlHandle take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        CurlHandle handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    return CurlHandle(curl_easy_init());
  }
  void give_back(CurlHandle handle) {
    curl_easy_reset(handle.get());  // forgets what pointed into the transfer
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(handle));
  }

 private:
  std::mutex mutex_;
  std::vector<CurlHandle> idle_;
};

HttpClient::HttpClient(HttpSettings settings) : settings_(std::move(settings)) {
  start_curl();
  pool_ = std::make_unique<Pool>();
}

HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::send(const HttpRequest& request, Deadline deadline) {
  const auto left = std::chrono::floor<Millis>(deadline - BootClock::now());
  if (left <= Millis{0}) {
    return Error{.code = Code::unavailable,
                 .message = "the deadline had passed before a request was sent",
                 .retryable = true};
  }
  CurlHandle handle = pool_->take();
  if (!handle) return out_of_memory();
  Result<HttpResponse> response = [&]() -> Result<HttpResponse> {
    Transfer transfer(handle.get(), settings_, request);
    if (transfer.refused()) return *transfer.refused();
    transfer.set_limit(left);
    return transfer.finish(curl_easy_perform(handle.get()));
  }();
  pool_->give_back(std::move(handle));
  return response;
}

Result<HttpResponse> HttpClient::stream(const HttpRequest& request, const OnLine& on_line,
                                        std::stop_token stop, Millis silence) {
  const CurlHandle handle(curl_easy_init());
  const MultiHandle multi(curl_multi_init());
  if (!handle || !multi) return out_of_memory();
  Transfer transfer(handle.get(), settings_, request);
  if (transfer.refused()) return *transfer.refused();
  transfer.set_lines(on_line);
  const std::stop_callback on_stop(stop, [&] { curl_multi_wakeup(multi.get()); });

  std::size_t seen = 0;
  Instant heard = BootClock::now();
  bool silent = false;
  const auto goes_on = [&] {
    if (const std::size_t now = transfer.received(); now != seen) {
      seen = now;
      heard = BootClock::now();
    }
    silent = silence > Millis{0} && BootClock::now() - heard >= silence;
    return !silent && !stop.stop_requested();
  };
  curl_multi_add_handle(multi.get(), handle.get());
  const auto poll =
      silence > Millis{0} ? std::min(silence / 2 + Millis(1), Millis(1000)) : Millis(1000);
  const auto end = drive(multi.get(), static_cast<int>(poll.count()), goes_on);
  Result<HttpResponse> response =
      silent ? Result<HttpResponse>(transfer.error(CURLE_OPERATION_TIMEDOUT))
             : transfer.finish(end.value_or(CURLE_OK));
  curl_multi_remove_handle(multi.get(), handle.get());
  return response;
}

}  // namespace baton::http_client
