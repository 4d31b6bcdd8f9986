#include "apps/gateway/bearer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <openssl/crypto.h>

#include "apps/gateway/digest.h"

namespace baton::gateway {
namespace {

constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 4096;
constexpr std::string_view kScheme = "bearer ";

bool may_be_in_a_token(char character) {
  constexpr std::string_view kOthers = "-._~+/=";
  return (character >= 'A' && character <= 'Z') || (character >= 'a' && character <= 'z') ||
         (character >= '0' && character <= '9') || kOthers.find(character) != kOthers.npos;
}

Error bad_token(const std::string& where, const std::string& what) {
  return {.code = Code::bad_request, .message = "the token in " + where + " " + what};
}

Result<std::optional<std::string>> check(std::string token, const std::string& where) {
  if (token.size() < kLeast || token.size() > kMost) {
    return bad_token(where, "must have from 16 to 4096 characters");
  }
  if (!std::all_of(token.begin(), token.end(), may_be_in_a_token)) {
    return bad_token(where, "may have letters, digits and -._~+/= alone");
  }
  return std::optional(std::move(token));
}

// What follows "Bearer ", in any case; nothing if it is another scheme.
std::optional<std::string_view> token_of(std::string_view authorization) {
  if (authorization.size() < kScheme.size()) return std::nullopt;
  const bool same = std::equal(
      kScheme.begin(), kScheme.end(), authorization.begin(),
      [](char wanted, char got) { return wanted == (got >= 'A' && got <= 'Z' ? got + 32 : got); });
  if (!same) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

http::Response unauthorized(const char* challenge) {
  auto response = http::error_response(401, "unauthorized", "this needs a bearer token");
  response.headers.emplace_back("WWW-Authenticate", challenge);
  return response;
}

}  // namespace

Result<std::optional<std::string>> read_bearer_token(const std::string& file) {
  if (!file.empty()) {
    std::ifstream in(file);
    std::string line(kMost + 2, '\0');
    in.read(line.data(), static_cast<std::streamsize>(line.size()));
    if (in.bad() || (in.gcount() == 0 && !in.eof())) {
      return Error{.code = Code::bad_request, .message = "--token-file: cannot read " + file};
    }
    if (static_cast<std::size_t>(in.gcount()) > kMost + 1) {
      return bad_token(file,
                       "must have from 16 to 4096 characters, and nothing may follow its line");
    }
    line.resize(static_cast<std::size_t>(in.gcount()));
    return check(line.substr(0, line.find_first_of("\r\n")), file);
  }
  const char* variable = std::getenv("BATON_GATEWAY_TOKEN");
  if (variable == nullptr) return std::optional<std::string>();
  return check(variable, "$BATON_GATEWAY_TOKEN");
}

std::function<std::optional<http::Response>(const http::Request&)> requiring(
    const std::string& token) {
  // Digests are of one length, so that comparing them takes the same time whatever was sent.
  return [wanted = digest(token)](const http::Request& request) -> std::optional<http::Response> {
    for (const char* open : {"/healthz", "/readyz", "/metrics"}) {
      if (request.route == open) return std::nullopt;
    }
    const auto sent = token_of(request.header("authorization"));
    if (!sent) return unauthorized("Bearer realm=\"baton-gateway\"");
    const std::string got = digest(*sent);
    if (CRYPTO_memcmp(got.data(), wanted.data(), wanted.size()) == 0) return std::nullopt;
    return unauthorized("Bearer realm=\"baton-gateway\", error=\"invalid_token\"");
  };
}

}  // namespace baton::gateway
