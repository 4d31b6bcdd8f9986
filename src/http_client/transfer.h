#pragma once

// One request on one curl handle.

#include <memory>
#include <optional>
#include <string>

#include <curl/curl.h>

#include "http_client/http_client.h"

namespace baton::http_client {

struct CurlClose {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlClose>;

// Prepares a handle for a request, gathers its response, and says what an end of the transfer
// means. The request and the settings must outlive it.
class Transfer {
 public:
  Transfer(CURL* handle, const HttpSettings& settings, const HttpRequest& request);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Why the request cannot be sent at all.
  [[nodiscard]] const std::optional<Error>& refused() const { return refused_; }

  void set_limit(Millis left);  // for the whole transfer
  void set_lines(const HttpClient::OnLine& on_line) { on_line_ = &on_line; }

  // The response, or what its missing means.
  [[nodiscard]] Result<HttpResponse> finish(CURLcode end);

  [[nodiscard]] bool had_enough() const { return had_enough_; }  // on_line returned false
  [[nodiscard]] std::size_t received() const { return received_; }
  [[nodiscard]] Error error(CURLcode end) const;

 private:
  static int on_request(void* self, char* there, char* here, int there_port, int here_port);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  bool take_header(std::string_view line);
  bool take_body(std::string_view bytes);
  bool take_lines(std::string_view bytes);
  void prepare();
  void prepare_tls();
  [[nodiscard]] bool anything_sent() const;

  CURL* handle_;
  const HttpSettings& settings_;
  const HttpRequest& request_;
  std::unique_ptr<curl_slist, CurlClose> headers_;
  std::optional<Error> refused_;
  HttpResponse response_;
  const HttpClient::OnLine* on_line_ = nullptr;
  std::string line_;  // the beginning of a line whose end has not come yet
  std::size_t received_ = 0;
  std::size_t headers_size_ = 0;
  bool had_enough_ = false;
  bool broke_off_ = false;  // it would have been sent a second time
  bool too_large_ = false;
  char problem_[CURL_ERROR_SIZE] = {};
};

}  // namespace baton::http_client
