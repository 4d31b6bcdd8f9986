#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/export.h"

namespace baton::http {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The first value under `name`; nothing if there is none.
[[nodiscard]] BATON_EXPORT const std::string* find(const Pairs& pairs, std::string_view name);

struct Request {
  std::string method;  // HEAD arrives as GET: the server drops the body
  std::string path;    // as it was sent, without the query
  std::string route;   // the pattern that matched, as "/signals/{name}"
  Pairs parameters;    // what stands for the {…} of the route, decoded
  Pairs query;         // decoded
  Pairs headers;       // names in lower case
  std::string body;
  std::string peer;  // address:port

  [[nodiscard]] std::string_view parameter(std::string_view name) const;
  [[nodiscard]] std::string_view header(std::string_view name) const;  // in lower case
};

// Whether a browser sends it on behalf of a page that another server gave it. Such a page can make
// it send requests to anything the browser reaches, this machine included. With `on_loopback` the
// page must have come from this machine by name, too: the name of another can be made to mean
// 127.0.0.1 after its page was loaded.
[[nodiscard]] BATON_EXPORT bool is_cross_origin(const Request& request, bool on_loopback);

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Pairs headers;
};

// {"error":{"code":…,"message":…}}, as the command line gives with --json.
[[nodiscard]] BATON_EXPORT Response error_response(int status, std::string_view code,
                                                   std::string_view message);

// Makes the answers that the server gives in the place of a handler: no such path, too large, too
// busy.
using Refusal =
    std::function<Response(int status, std::string_view code, std::string_view message)>;

// The answer to one request, from any thread, once; later calls do nothing. If the last copy goes
// without having answered, the client gets a 500. Outlives the server harmlessly.
class BATON_EXPORT Reply {
 public:
  using Send = std::function<void(Response)>;
  explicit Reply(Send send, Refusal refusal = error_response);
  void operator()(Response response) const;

 private:
  struct Once;
  std::shared_ptr<Once> once_;
};

}  // namespace baton::http
