#pragma once

// Functions for the URLs of several stores.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "baton/clock.h"
#include "baton/result.h"
#include "core/percent.h"

namespace baton::store {

using core::percent_decoded;
using core::percent_encoded;

[[nodiscard]] BATON_EXPORT Error bad_url(std::string message);

// A message of a server without the secret that it repeats. A short secret is also a part of
// ordinary words: below 8 characters it is hidden only where it is a word, below 4 only behind one
// of : = " '
[[nodiscard]] BATON_EXPORT std::string without_secret(std::string text, std::string_view secret);

// 500ms, 5s, 1m. Nothing unless it is more than nothing.
[[nodiscard]] BATON_EXPORT std::optional<Millis> parse_span(std::string_view text);

// A whole number from 0 to `most`.
[[nodiscard]] BATON_EXPORT std::optional<int> parse_number(std::string_view text, int most);

// A host whose traffic stays on this machine: localhost, a loopback address or a socket's path.
[[nodiscard]] BATON_EXPORT bool is_local(std::string_view host);

struct UrlUser {
  std::string name;
  std::string password;
};
// name[:password], decoded.
[[nodiscard]] BATON_EXPORT std::optional<UrlUser> parse_user(std::string_view text);

// host, host:port, [address] or [address]:port; the host may be empty. Nothing for another text.
struct HostAndPort {
  std::string_view host;
  std::optional<int> port;
};
[[nodiscard]] BATON_EXPORT std::optional<HostAndPort> parse_host_and_port(std::string_view text);

// The other way: an address of IPv6 in brackets.
[[nodiscard]] BATON_EXPORT std::string host_and_port(const std::string& host, int port);

// Splits a URL at its scheme and its first '?'.
struct UrlParts {
  std::string_view place;    // between the two
  std::string_view options;  // behind the '?'
};
[[nodiscard]] BATON_EXPORT UrlParts split_url(std::string_view url);

// Gives every name=value of name=value&… to `take`, as they are written, until it fails.
using TakeOption = std::function<Result<void>(std::string_view name, std::string_view value)>;
[[nodiscard]] BATON_EXPORT Result<void> take_options(std::string_view options,
                                                     const TakeOption& take);

// The URL without those options that `is_ours` takes.
using IsOurs = std::function<Result<bool>(std::string_view name, std::string_view value)>;
[[nodiscard]] BATON_EXPORT Result<std::string> without_own_options(std::string_view url,
                                                                   const IsOurs& is_ours);

}  // namespace baton::store
