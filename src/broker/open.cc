// The one place that knows every broker by name.

#include "baton/broker.h"

#ifdef BATON_HAS_BROKER_EMBEDDED
#include "broker/embedded/embedded_broker.h"
#endif
#ifdef BATON_HAS_BROKER_RABBITMQ
#include "broker/rabbitmq/rabbitmq_broker.h"
#endif

namespace baton {
namespace {

using Open = Result<std::shared_ptr<Broker>> (*)(std::string_view url);

struct BrokerKind {
  std::string_view scheme;
  Open open = nullptr;  // null: not in this build
};

constexpr BrokerKind kKinds[] = {
#ifdef BATON_HAS_BROKER_EMBEDDED
    {"embedded", broker::make_embedded_broker},
#else
    {"embedded"},
#endif
#ifdef BATON_HAS_BROKER_RABBITMQ
    {"rabbitmq", broker::make_rabbitmq_broker},
    {"rabbitmqs", broker::make_rabbitmq_broker},
#else
    {"rabbitmq"},
    {"rabbitmqs"},
#endif
};
constexpr std::string_view kKnown = "embedded:PATH, rabbitmq:// and rabbitmqs://";

}  // namespace

Result<std::shared_ptr<Broker>> Broker::open(std::string_view url) {
  const auto colon = url.find(':');
  if (colon == std::string_view::npos) {
    return Error{.code = Code::bad_url,
                 .message = "a broker URL starts with a scheme, as embedded:broker.db; there are " +
                            std::string(kKnown)};
  }
  const std::string_view scheme = url.substr(0, colon);
  for (const BrokerKind& kind : kKinds) {
    if (kind.scheme != scheme) continue;
    if (kind.open != nullptr) return kind.open(url);
    return Error{.code = Code::unsupported,
                 .message = "this build of Baton has no broker for " + std::string(scheme) +
                            ":; build it where SQLite is installed for embedded:, or librabbitmq "
                            "and OpenSSL for rabbitmq:"};
  }
  return Error{.code = Code::bad_url,
               .message = "no broker is called '" + std::string(scheme.substr(0, 32)) +
                          ":'; there are " + std::string(kKnown)};
}

}  // namespace baton
