// The composition root of the library: the one place that knows every store by name.

#include "baton/locks.h"
#include "baton/memory_store.h"
#include "baton/store_admin.h"

#ifdef BATON_HAS_STORE_SQLITE
#include "baton/sqlite_store.h"
#endif
#ifdef BATON_HAS_STORE_POSTGRES
#include "baton/postgres_store.h"
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
#include "baton/kubernetes_store.h"
#endif

namespace baton {
namespace {

Error bad_url(std::string message) {
  return {.code = Code::bad_url, .message = std::move(message)};
}

std::string_view scheme_of(std::string_view url) {
  const auto colon = url.find(':');
  return colon == std::string_view::npos ? std::string_view{} : url.substr(0, colon);
}

bool is_postgres(std::string_view scheme) { return scheme == "postgres" || scheme == "postgresql"; }

Error unknown_scheme(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  if (scheme.empty()) {
    return bad_url(
        "a store URL starts with memory:, sqlite:, postgres:// or k8s://, as sqlite:locks.db");
  }
  if (scheme == "sqlite" || is_postgres(scheme) || scheme == "k8s") {
    return {.code = Code::unsupported,
            .message = "this build of Baton has no store for " + std::string(scheme) + ":"};
  }
  return bad_url("no store is called '" + std::string(scheme.substr(0, 32)) +
                 ":'; there are memory:, sqlite:, postgres:// and k8s://");
}

}  // namespace

Result<std::shared_ptr<LockStore>> open_store(std::string_view url, Deadline deadline) {
  const std::string_view scheme = scheme_of(url);
  const auto shared =
      [](Result<std::unique_ptr<LockStore>> store) -> Result<std::shared_ptr<LockStore>> {
    if (!store) return store.error();
    return std::shared_ptr<LockStore>(std::move(*store));
  };
  if (scheme == "memory") {
    if (url != "memory:") return bad_url("memory: takes nothing behind the colon");
    return std::shared_ptr<LockStore>(make_memory_store());
  }
#ifdef BATON_HAS_STORE_SQLITE
  if (scheme == "sqlite") return shared(open_sqlite_store(url, deadline));
#endif
#ifdef BATON_HAS_STORE_POSTGRES
  if (is_postgres(scheme)) return shared(open_postgres_store(url, deadline));
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
  if (scheme == "k8s") return shared(open_kubernetes_store(url, deadline));
#endif
  (void)shared;
  (void)deadline;
  return unknown_scheme(url);
}

Result<std::unique_ptr<StoreAdmin>> open_admin(std::string_view url, Deadline deadline) {
  const std::string_view scheme = scheme_of(url);
  if (scheme == "memory") {
    return Error{.code = Code::unsupported, .message = "memory: has nothing to administer"};
  }
#ifdef BATON_HAS_STORE_SQLITE
  if (scheme == "sqlite") return open_sqlite_admin(url, deadline);
#endif
#ifdef BATON_HAS_STORE_POSTGRES
  if (is_postgres(scheme)) return open_postgres_admin(url, deadline);
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
  if (scheme == "k8s") return open_kubernetes_admin(url, deadline);
#endif
  (void)deadline;
  return unknown_scheme(url);
}

Result<LockClient> open(std::string_view url, ClientOptions options) {
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  auto store = open_store(url, clock.now() + Millis(10'000));
  if (!store) return store.error();
  return LockClient::make(std::move(*store), std::move(options));
}

// Hides what stands between the first ':' of the user part and its '@', and any password option.
std::string redact_url(std::string_view url) {
  std::string out(url);
  const auto slashes = out.find("://");
  if (slashes != std::string::npos) {
    const auto begin = slashes + 3;
    const auto end = std::min(out.find('/', begin), out.size());
    const auto at = out.rfind('@', end);
    const auto colon = out.find(':', begin);
    if (at != std::string::npos && at > begin && colon != std::string::npos && colon < at) {
      out.replace(colon + 1, at - colon - 1, "***");
    }
  }
  for (const std::string_view option : {"password=", "passfile=", "sslpassword="}) {
    for (auto found = out.find(option); found != std::string::npos;
         found = out.find(option, found + option.size())) {
      const auto begin = found + option.size();
      const auto end = std::min(out.find('&', begin), out.size());
      out.replace(begin, end - begin, "***");
    }
  }
  return out;
}

}  // namespace baton
