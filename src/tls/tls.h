#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "baton/clock.h"
#include "baton/export.h"
#include "baton/result.h"

struct ssl_st;

namespace baton {

struct TlsSettings {
  std::string ca_file;  // empty: those that the system trusts
  std::string cert_file;
  std::string key_file;
  bool verify = true;    // false also accepts a server that is not the one we asked for
  std::string location;  // for messages: the URL without its password
};

// The options ca, cert, key and verify of a URL.
[[nodiscard]] BATON_EXPORT bool is_tls_option(std::string_view name);
[[nodiscard]] BATON_EXPORT Result<void> take_tls_option(std::string_view name,
                                                        std::string_view value, TlsSettings& into);

// TLS over a connected socket, which it does not own. Never blocks but in handshake(). Not
// thread-safe.
class BATON_EXPORT Tls {
 public:
  // Verifies the server's certificate and its name, unless the settings say otherwise. The files
  // are read each time, so that renewed certificates are used without a restart.
  static Result<std::unique_ptr<Tls>> handshake(int socket, const TlsSettings& settings,
                                                const std::string& host, Deadline deadline);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // As send() and recv() with MSG_DONTWAIT do: -1 and EAGAIN where they would wait, else EPROTO if
  // TLS itself failed, and then problem() says why. A short read means that no more is there.
  ssize_t write(const void* bytes, std::size_t size);
  ssize_t read(void* bytes, std::size_t size);
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // The server asked for a client's certificate, and the settings name none.
  [[nodiscard]] bool wants_certificate() const { return wants_certificate_; }

 private:
  explicit Tls(ssl_st* session) : session_(session) {}

  Result<void> shake_hands(int socket, Deadline deadline);
  ssize_t failed(int result);

  ssl_st* session_;
  std::string problem_;
  bool wants_certificate_ = false;
};

}  // namespace baton
