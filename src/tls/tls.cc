#include "tls/tls.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "store/common/url.h"
#include "store/common/wait_for.h"

namespace baton {
namespace {

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using Method = std::unique_ptr<BIO_METHOD, FreeWith<BIO_meth_free>>;

// A BIO of our own, because OpenSSL's writes with write(2): a server that has gone would raise
// SIGPIPE in the program that uses this library.
int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

bool may_retry(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

int send_some(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent =
      ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (may_retry(sent)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int receive_some(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto got = ::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (may_retry(got)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* new_bio(int socket) {
  static const Method method = [] {
    Method made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "baton socket"));
    if (made == nullptr) return made;
    BIO_meth_set_write(made.get(), send_some);
    BIO_meth_set_read(made.get(), receive_some);
    BIO_meth_set_ctrl(made.get(), control);
    return made;
  }();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method.get());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

// The first error of OpenSSL is the cause; the others say where it happened.
std::string openssl_error() {
  const auto code = ERR_peek_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "failed" : reason;
}

Error unusable(const TlsSettings& settings, const std::string& what) {
  return Error{.code = Code::unavailable, .message = settings.location + ": TLS: " + what};
}

Result<Context> context_for(const TlsSettings& settings) {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return unusable(settings, openssl_error());
  SSL_CTX* const made = context.get();
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Without one, OpenSSL would ask for the password of an encrypted key on the terminal.
  SSL_CTX_set_default_passwd_cb(made, [](char*, int, int, void*) { return 0; });
  if (settings.verify) {
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    const bool loaded = settings.ca_file.empty()
                            ? SSL_CTX_set_default_verify_paths(made) == 1
                            : SSL_CTX_load_verify_file(made, settings.ca_file.c_str()) == 1;
    if (!loaded)
      return unusable(settings, "cannot read ca=" + settings.ca_file + ": " + openssl_error());
  }
  if (settings.cert_file.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(made, settings.cert_file.c_str()) != 1) {
    return unusable(settings, "cannot read cert=" + settings.cert_file + ": " + openssl_error());
  }
  if (SSL_CTX_use_PrivateKey_file(made, settings.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable(settings, "cannot use key=" + settings.key_file + ": " + openssl_error());
  }
  return context;
}

// An address must be in the certificate as an address, a name as a name.
bool expect_host(SSL* session, const std::string& host) {
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(AF_INET, host.c_str(), address) == 1 ||
      inet_pton(AF_INET6, host.c_str(), address) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  }
  SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(session, host.c_str()) == 1 &&
         SSL_set1_host(session, host.c_str()) == 1;
}

int clamped(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

bool is_tls_option(std::string_view name) {
  return name == "ca" || name == "cert" || name == "key" || name == "verify";
}

Result<void> take_tls_option(std::string_view name, std::string_view value, TlsSettings& into) {
  // Never with a piece of the URL: it may be a piece of the password.
  const auto decoded = store::percent_decoded(value);
  if (!decoded) return store::bad_url("a % in the URL is not followed by two hexadecimal digits");
  if (name == "verify") {
    if (*decoded != "no" && *decoded != "yes") return store::bad_url("verify is yes or no");
    into.verify = *decoded == "yes";
    return {};
  }
  if (decoded->empty()) {
    return store::bad_url("the option " + std::string(name) + " names no file");
  }
  (name == "ca" ? into.ca_file : name == "cert" ? into.cert_file : into.key_file) = *decoded;
  return {};
}

Tls::~Tls() { SSL_free(session_); }

Result<std::unique_ptr<Tls>> Tls::handshake(int socket, const TlsSettings& settings,
                                            const std::string& host, Deadline deadline) {
  auto context = context_for(settings);
  if (!context) return context.error();
  std::unique_ptr<Tls> tls(new Tls(SSL_new(context->get())));
  BIO* const bio = tls->session_ == nullptr ? nullptr : new_bio(socket);
  if (bio == nullptr) return unusable(settings, openssl_error());
  SSL_set_bio(tls->session_, bio, bio);  // owns it now
  if (settings.cert_file.empty()) {
    const auto asked_for_one = [](SSL*, void* flag) {
      *static_cast<bool*>(flag) = true;
      return 1;
    };
    SSL_set_cert_cb(tls->session_, asked_for_one, &tls->wants_certificate_);
  }
  if (!expect_host(tls->session_, host)) {
    return unusable(settings, "'" + host + "' is no name of a server");
  }
  if (auto shaken = tls->shake_hands(socket, deadline); !shaken) {
    shaken.error().message = settings.location + ": TLS: " + shaken.error().message;
    return shaken.error();
  }
  return tls;
}

Result<void> Tls::shake_hands(int socket, Deadline deadline) {
  Error error{.code = Code::unavailable, .retryable = true};
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(session_);
    if (result == 1) return {};
    const int why = SSL_get_error(session_, result);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) break;
    if (!store::wait_for(socket, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline)) {
      error.message = "no handshake in time; is this the port on which the server speaks TLS?";
      return error;
    }
  }
  if (const long refused = SSL_get_verify_result(session_); refused != X509_V_OK) {
    error.message = std::string("the server's certificate is refused: ") +
                    X509_verify_cert_error_string(refused);
    error.retryable = false;
    return error;
  }
  error.message =
      ERR_peek_error() == 0 ? "the server has hung up in the handshake" : openssl_error();
  error.message += "; is this the port on which the server speaks TLS?";
  return error;
}

ssize_t Tls::failed(int result) {
  const int cause = errno;
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() != 0) break;
      errno = cause;
      return cause == 0 ? 0 : -1;
    default: break;
  }
  problem_ = "TLS: " + openssl_error();
  errno = EPROTO;
  return -1;
}

ssize_t Tls::write(const void* bytes, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  const int sent = SSL_write(session_, bytes, clamped(size));
  return sent > 0 ? sent : failed(sent);
}

ssize_t Tls::read(void* bytes, std::size_t size) {
  ssize_t total = 0;
  while (size > 0) {
    ERR_clear_error();
    errno = 0;
    const int got = SSL_read(session_, static_cast<char*>(bytes) + total, clamped(size));
    if (got <= 0) return total > 0 ? total : failed(got);
    total += got;
    size -= static_cast<std::size_t>(got);
  }
  return total;
}

}  // namespace baton
