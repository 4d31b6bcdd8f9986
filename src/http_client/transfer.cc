#include "http_client/transfer.h"

#include <algorithm>
#include <cctype>

namespace baton::http_client {
namespace {

// scheme://host:port, for people.
std::string server_of(const std::string& url) {
  const auto begin = url.find("://");
  return url.substr(0, url.find_first_of("/?#", begin == std::string::npos ? 0 : begin + 3));
}

bool one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < ' ' || c == 127; });
}

std::optional<Error> malformed(const HttpRequest& request) {
  const auto refuse = [](std::string message) {
    return Error{.code = Code::bad_request, .message = std::move(message)};
  };
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://")) {
    return refuse("not an http:// or https:// URL");
  }
  if (!one_line(request.url) || server_of(request.url).find('@') != std::string::npos) {
    return refuse("an HTTP URL must not have control characters or a password");
  }
  for (const auto& [name, value] : request.headers) {
    const bool plain = !name.empty() && one_line(name) && name.find(':') == std::string::npos;
    if (!plain || !one_line(value)) {
      return refuse("the HTTP header '" + (plain ? name : std::string("?")) +
                    "' has characters that a header cannot have");
    }
  }
  return std::nullopt;
}

// Asking again cannot help: somebody must change something first.
bool is_final(CURLcode end) {
  switch (end) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: return true;
    default: return false;
  }
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

}  // namespace

Transfer::Transfer(CURL* handle, const HttpSettings& settings, const HttpRequest& request)
    : handle_(handle), settings_(settings), request_(request), refused_(malformed(request)) {
  curl_easy_reset(handle_);  // keeps its connections
  if (!refused_) prepare();
}

void Transfer::prepare() {
  curl_easy_setopt(handle_, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle_, CURLOPT_QUICK_EXIT, 1L);  // a stuck name server must not outlast us
  curl_easy_setopt(handle_, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle_, CURLOPT_PROXY, "");
  curl_easy_setopt(handle_, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPIDLE, 10L);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPINTVL, 5L);
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(settings_.connect_limit.count()));
  curl_easy_setopt(handle_, CURLOPT_USERAGENT, settings_.user_agent.c_str());
  curl_easy_setopt(handle_, CURLOPT_ERRORBUFFER, problem_);
  if (request_.once) {
    curl_easy_setopt(handle_, CURLOPT_PREREQFUNCTION, &Transfer::on_request);
    curl_easy_setopt(handle_, CURLOPT_PREREQDATA, this);
  }
  curl_easy_setopt(handle_, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
  if (request_.method == "GET" && request_.body.empty()) {
    curl_easy_setopt(handle_, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    if (!request_.body.empty() || request_.method == "POST" || request_.method == "PUT") {
      curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request_.body.size()));
      curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request_.body.data());
    }
  }
  // Waiting for "100 Continue" would cost a round trip.
  headers_.reset(curl_slist_append(nullptr, "Expect:"));
  for (const auto& [name, value] : request_.headers) {
    curl_slist_append(headers_.get(), (name + (value.empty() ? ";" : ": " + value)).c_str());
  }
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_.get());
  if (request_.url.starts_with("https://")) prepare_tls();
}

void Transfer::prepare_tls() {
  const TlsSettings& tls = settings_.tls;
  curl_easy_setopt(handle_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
  curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
  const auto set = [&](const std::string& pem, CURLoption blob_option, const std::string& file,
                       CURLoption file_option) {
    if (!pem.empty()) {
      curl_blob blob = blob_of(pem);
      curl_easy_setopt(handle_, blob_option, &blob);
    } else if (!file.empty()) {
      curl_easy_setopt(handle_, file_option, file.c_str());
    }
  };
  set(tls.ca_pem, CURLOPT_CAINFO_BLOB, tls.ca_file, CURLOPT_CAINFO);
  set(tls.cert_pem, CURLOPT_SSLCERT_BLOB, tls.cert_file, CURLOPT_SSLCERT);
  set(tls.key_pem, CURLOPT_SSLKEY_BLOB, tls.key_file, CURLOPT_SSLKEY);
  // Without one, OpenSSL would ask for the password of an encrypted key on the terminal.
  curl_easy_setopt(handle_, CURLOPT_KEYPASSWD, "");
}

void Transfer::set_limit(Millis left) {
  curl_easy_setopt(handle_, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::clamp<Millis::rep>(left.count(), 1, 1L << 30)));
}

// Curl asks before each time it sends the request.
int Transfer::on_request(void* self, char* /*there*/, char* /*here*/, int /*there_port*/,
                         int /*here_port*/) {
  auto* transfer = static_cast<Transfer*>(self);
  transfer->broke_off_ = transfer->anything_sent();
  return transfer->broke_off_ ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take_header({data, size * count}) ? size * count : 0;
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take_body({data, size * count}) ? size * count : 0;
}

bool Transfer::take_header(std::string_view line) {
  received_ += line.size();
  headers_size_ += line.size();
  const std::size_t size = on_line_ == nullptr ? received_ : headers_size_;
  if (size > settings_.max_response) return too_large_ = true, false;
  if (line.starts_with("HTTP/")) {  // also after "100 Continue"
    response_.headers.clear();
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && static_cast<unsigned char>(value.back()) <= ' ') value.remove_suffix(1);
  response_.headers.emplace_back(std::move(name), value);
  return true;
}

bool Transfer::take_body(std::string_view bytes) {
  received_ += bytes.size();
  long status = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  if (on_line_ != nullptr && status >= 200 && status < 300) return take_lines(bytes);
  if (received_ > settings_.max_response) return too_large_ = true, false;
  response_.body += bytes;
  return true;
}

bool Transfer::take_lines(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > settings_.max_line) return too_large_ = true, false;
    if (end == std::string_view::npos) {
      line_ += part;
      return true;
    }
    bytes.remove_prefix(end + 1);
    std::string_view whole = part;
    if (!line_.empty()) whole = line_ += part;
    if (whole.ends_with('\r')) whole.remove_suffix(1);
    had_enough_ = !(*on_line_)(whole);
    line_.clear();
    if (had_enough_) return false;
  }
  return true;
}

// Also counts what a kept connection swallowed before curl opened a new one for the same request.
bool Transfer::anything_sent() const {
  long bytes = 0;
  curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

Error Transfer::error(CURLcode end) const {
  const std::string server = server_of(request_.url);
  Error error{.code = Code::unavailable,
              .message = server + ": ",
              .retryable = !is_final(end) && !too_large_,
              .in_doubt = anything_sent()};
  if (too_large_) {
    error.message += "the answer is larger than the limit";
  } else if (broke_off_) {
    error.message += "the connection broke before the answer";
  } else if (end == CURLE_OPERATION_TIMEDOUT) {
    error.message += error.in_doubt ? "no answer in time" : "no connection in time";
  } else {
    error.message += problem_[0] != '\0' ? problem_ : curl_easy_strerror(end);
  }
  std::replace_if(
      error.message.begin(), error.message.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return error;
}

Result<HttpResponse> Transfer::finish(CURLcode end) {
  if (end != CURLE_OK && !had_enough_) return error(end);
  long status = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  return std::move(response_);
}

}  // namespace baton::http_client
