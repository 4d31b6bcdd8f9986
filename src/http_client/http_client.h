#pragma once

// HTTP/1.1 to a server that we were told to trust, for stores behind HTTP. Never follows redirects,
// never asks the environment for a proxy, never raises signals.

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::http_client {

// Each as a file or as the PEM text itself; the text wins. Without a CA the system's are trusted.
struct TlsSettings {
  std::string ca_file;
  std::string ca_pem;
  std::string cert_file;
  std::string cert_pem;
  std::string key_file;
  std::string key_pem;
  bool verify = true;  // false also accepts a server that is not the one we asked for
};

struct HttpSettings {
  TlsSettings tls;
  Millis connect_limit{2000};           // for a new connection, within each request's deadline
  std::size_t max_response = 16 << 20;  // bytes of headers and body
  std::size_t max_line = 4 << 20;       // bytes of one line of a stream
  std::string user_agent = "baton";
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http:// or https://, without user and password: those go into a header
  HttpHeaders headers;
  std::string body;
  // A kept connection may break after it has swallowed the request. Unless this is set, the request
  // is then sent a second time on a new one: only for what may happen twice.
  bool once = false;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;  // names in lower case
  std::string body;

  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
  [[nodiscard]] std::string_view header(std::string_view name) const;  // empty if there is none
};

// "Bearer …", for the header Authorization.
[[nodiscard]] std::string bearer_auth(std::string_view token);

// Thread-safe. Connections are kept and used again. An Error is about the line, never about what
// the server said: any status is a response. Error::in_doubt is false only if nothing of the
// request was sent; Error::retryable is false where asking again cannot help (a certificate that is
// not trusted, a malformed request, an answer above the limit). No error text has a header or body
// in it.
class HttpClient {
 public:
  explicit HttpClient(HttpSettings settings = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  [[nodiscard]] Result<HttpResponse> send(const HttpRequest& request, Deadline deadline);

  // Gives every line of a successful response to `on_line` (in the calling thread, without its line
  // end) until that returns false, `stop` is requested from any thread, the server ends the
  // response, or nothing has come for `silence` (zero: for ever). The first two and the third are
  // no errors. A response that is not ok() is gathered instead, and its body returned.
  using OnLine = std::function<bool(std::string_view line)>;
  [[nodiscard]] Result<HttpResponse> stream(const HttpRequest& request, const OnLine& on_line,
                                            std::stop_token stop, Millis silence = Millis{0});

 private:
  class Pool;
  HttpSettings settings_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace baton::http_client
