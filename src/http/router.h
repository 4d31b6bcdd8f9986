#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/target.h"

namespace baton::http {

// Which code answers which request. A pattern is a path with {name} for a part, as
// "/signals/{name}"; of several that match, the one that was added first counts. HEAD is answered
// by GET. Add everything before the server starts.
class BATON_EXPORT Router {
 public:
  using Handler = std::function<Response(const Request&)>;
  using AsyncHandler = std::function<void(Request, Reply)>;

  enum class Run {
    on_worker,  // may block for a while: there are few workers
    at_once,    // on a thread that all connections share: for what takes microseconds
  };

  void add(std::string method, std::string_view pattern, Handler handler, Run run = Run::on_worker);

  // The handler may keep the reply and answer later, from any thread: nothing but memory is held
  // meanwhile.
  void add_async(std::string method, std::string_view pattern, AsyncHandler handler,
                 Run run = Run::on_worker);

  struct Match {
    const AsyncHandler* handler = nullptr;  // none: nobody answers this
    Run run = Run::at_once;
    std::string route;
    Pairs parameters;
    std::string allowed;  // the methods of this path, if there is one but not for this method
  };
  [[nodiscard]] Match find(std::string_view method, const RequestTarget& target) const;

  // Method and pattern of each, in the order in which they were added.
  [[nodiscard]] Pairs routes() const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;  // as in the pattern
    AsyncHandler handler;
    Run run;
  };
  std::vector<Route> routes_;
};

}  // namespace baton::http
