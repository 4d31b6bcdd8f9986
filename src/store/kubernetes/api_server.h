#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "http_client/http_client.h"
#include "store/kubernetes/credentials.h"

namespace baton::store::kubernetes {

// One request, and how to call it if the server refuses.
struct ApiCall {
  const char* verb;  // as RBAC calls it
  const char* method;
  std::string path;
  std::string body = {};
  bool writes = false;  // the server gives up by the deadline: none takes effect after it
  std::string_view resource = "leases.coordination.k8s.io";
};

// The API server of a cluster, as one user in one namespace. Thread-safe; every call returns by its
// deadline, and Error::in_doubt says whether a write may have taken effect all the same. Waits when
// the server asks for it.
class BATON_EXPORT ApiServer {
 public:
  using Heard = std::function<void(const http_client::HttpResponse&)>;
  // Every answer that is no stream is shown to `heard`.
  explicit ApiServer(const Cluster& cluster, Heard heard = {});

  // Any answer that the caller has to look at: rights, overload and a token that has been replaced
  // are dealt with here.
  [[nodiscard]] Result<http_client::HttpResponse> send(const ApiCall& call, Deadline deadline);

  // The answer to a call that never ends, line by line; see HttpClient::stream.
  [[nodiscard]] Result<http_client::HttpResponse> stream(
      const ApiCall& call, const http_client::HttpClient::OnLine& on_line, std::stop_token stop,
      Millis silence);

  // The error that an answer means which is not ok(), with a message that says what to do.
  [[nodiscard]] Error refusal(const ApiCall& call, const http_client::HttpResponse& response) const;

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const std::string& space() const { return space_; }

 private:
  [[nodiscard]] Result<http_client::HttpRequest> request(const ApiCall& call);
  [[nodiscard]] Result<void> pass_gate(Deadline deadline);
  void close_gate(Millis pause);

  const std::string address_;
  const std::string space_;
  const Heard heard_;
  Credentials credentials_;
  http_client::HttpClient http_;
  std::mutex mutex_;
  Instant gate_{};  // the server asked for a pause until then
};

}  // namespace baton::store::kubernetes
