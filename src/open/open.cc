// The composition root of the library: the one place that knows every store by name.

#include <algorithm>
#include <vector>

#include "baton/locks.h"
#include "baton/memory_store.h"
#include "baton/store_admin.h"
#include "runtime/deadline.h"

#ifdef BATON_HAS_STORE_SQLITE
#include "baton/sqlite_store.h"
#endif
#ifdef BATON_HAS_STORE_POSTGRES
#include "baton/postgres_store.h"
#endif
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
#include "baton/postgres_advisory_store.h"
#endif
#ifdef BATON_HAS_STORE_REDIS
#include "baton/redis_store.h"
#endif
#ifdef BATON_HAS_STORE_ETCD
#include "baton/etcd_store.h"
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
#include "baton/kubernetes_store.h"
#endif

namespace baton {
namespace {

using OpenStore = Result<std::unique_ptr<LockStore>> (*)(std::string_view url, Deadline deadline);
using OpenAdmin = Result<std::unique_ptr<StoreAdmin>> (*)(std::string_view url, Deadline deadline);

struct Kind {
  std::string_view scheme;
  OpenStore open_store = nullptr;
  OpenAdmin open_admin = nullptr;
};

Error bad_url(std::string message) {
  return {.code = Code::bad_url, .message = std::move(message)};
}

Result<std::unique_ptr<LockStore>> open_memory_store(std::string_view url, Deadline /*deadline*/) {
  if (url != "memory:") return bad_url("memory: takes nothing behind the colon");
  return make_memory_store();
}

Result<std::unique_ptr<StoreAdmin>> open_memory_admin(std::string_view /*url*/,
                                                      Deadline /*deadline*/) {
  return Error{.code = Code::unsupported, .message = "memory: has nothing to administer"};
}

// Schemes in pairs are two spellings of one, or with and without TLS.
constexpr Kind kKinds[] = {
    {"memory", open_memory_store, open_memory_admin},
#ifdef BATON_HAS_STORE_SQLITE
    {"sqlite", open_sqlite_store, open_sqlite_admin},
#endif
#ifdef BATON_HAS_STORE_POSTGRES
    {"postgres", open_postgres_store, open_postgres_admin},
    {"postgresql", open_postgres_store, open_postgres_admin},
#endif
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
    {"postgres-advisory", open_postgres_advisory_store, open_postgres_advisory_admin},
#endif
#ifdef BATON_HAS_STORE_REDIS
    {"redis", open_redis_store, open_redis_admin},
    {"rediss", open_redis_store, open_redis_admin},
    {"redis+unix", open_redis_store, open_redis_admin},
#endif
#ifdef BATON_HAS_STORE_ETCD
    {"etcd", open_etcd_store, open_etcd_admin},
    {"etcds", open_etcd_store, open_etcd_admin},
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
    {"k8s", open_kubernetes_store, open_kubernetes_admin},
#endif
};

constexpr std::string_view kAllSchemes[] = {
    "memory",     "sqlite", "postgres", "postgresql", "postgres-advisory", "redis", "rediss",
    "redis+unix", "etcd",   "etcds",    "k8s"};
constexpr std::string_view kKnown =
    "memory:, sqlite:, postgres://, postgres-advisory://, redis://, etcd:// and k8s://";

Result<Kind> kind_of(std::string_view url) {
  const auto colon = url.find(':');
  if (colon == std::string_view::npos) {
    return bad_url("a store URL starts with a scheme, as sqlite:locks.db; there are " +
                   std::string(kKnown));
  }
  const std::string_view scheme = url.substr(0, colon);
  for (const Kind& kind : kKinds) {
    if (kind.scheme == scheme) return kind;
  }
  for (const std::string_view known : kAllSchemes) {
    if (known != scheme) continue;
    std::string message = "this build of Baton has no store for " + std::string(scheme) +
                          ":; build it with that store (BATON_STORES), or use one of";
    for (const Kind& kind : kKinds) message += " " + std::string(kind.scheme) + ":";
    return Error{.code = Code::unsupported, .message = std::move(message)};
  }
  return bad_url("no store is called '" + std::string(scheme.substr(0, 32)) + ":'; there are " +
                 std::string(kKnown));
}

}  // namespace

Result<std::shared_ptr<LockStore>> open_store(std::string_view url, Deadline deadline) {
  const auto kind = kind_of(url);
  if (!kind) return kind.error();
  auto store = kind->open_store(url, deadline);
  if (!store) return store.error();
  return std::shared_ptr<LockStore>(std::move(*store));
}

Result<std::unique_ptr<StoreAdmin>> open_admin(std::string_view url, Deadline deadline) {
  const auto kind = kind_of(url);
  if (!kind) return kind.error();
  return kind->open_admin(url, deadline);
}

Result<LockClient> open(std::string_view url, ClientOptions options) {
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  const Deadline by = runtime::deadline_after(clock.now(), options.open_timeout);
  auto store = open_store(url, by);
  if (!store) return store.error();
  options.open_timeout = std::chrono::ceil<Millis>(by - clock.now());
  return LockClient::make(std::move(*store), std::move(options));
}

// Hides the text from the first ':' of the user part to the last '@', and any password option. A
// password may contain characters that should have been escaped, so this rather hides too much than
// shows a piece of it.
std::string redact_url(std::string_view url) {
  std::vector<bool> hidden(url.size());
  const auto hide = [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < std::min(end, url.size()); ++i) hidden[i] = true;
  };
  if (const auto slashes = url.find("://"); slashes != std::string_view::npos) {
    const auto colon = url.find(':', slashes + 3);
    const auto at = url.rfind('@');
    if (at != std::string_view::npos && colon < at) hide(colon + 1, at);
  }
  for (const std::string_view option : {"password=", "passfile="}) {
    for (auto found = url.find(option); found != std::string_view::npos;
         found = url.find(option, found + option.size())) {
      hide(found + option.size(), url.find('&', found));
    }
  }
  std::string out;
  for (std::size_t i = 0; i < url.size(); ++i) {
    if (!hidden[i]) {
      out += url[i];
    } else if (i == 0 || !hidden[i - 1]) {
      out += "***";
    }
  }
  return out;
}

}  // namespace baton
