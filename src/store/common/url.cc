#include "store/common/url.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <arpa/inet.h>

namespace baton::store {

Error bad_url(std::string message) {
  return Error{.code = Code::bad_url, .message = std::move(message)};
}

bool is_local(std::string_view host) {
  if (host.empty() || host.starts_with('/') || host.starts_with('@')) return true;
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == 127;
}

std::string without_secret(std::string text, std::string_view secret) {
  constexpr std::size_t kAlways = 8;
  constexpr std::size_t kAsAWord = 4;
  constexpr std::string_view kHidden = "***";
  if (secret.empty()) return text;
  const auto in_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  const auto tells = [&](std::size_t at) {
    if (secret.size() >= kAlways) return true;
    const bool begins = at == 0 || !in_word(at - 1);
    if (!begins || in_word(at + secret.size())) return false;
    return secret.size() >= kAsAWord ||
           (at > 0 && std::string_view(":=\"'").find(text[at - 1]) != std::string_view::npos);
  };
  for (auto at = text.find(secret); at != std::string::npos;) {
    const bool hide = tells(at);
    if (hide) text.replace(at, secret.size(), kHidden);
    at = text.find(secret, at + (hide ? kHidden.size() : 1));
  }
  return text;
}

std::optional<Millis> parse_span(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || number <= 0 || number > 1'000'000) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "ms") return Millis(number);
  if (unit == "s") return Millis(number * 1000);
  if (unit == "m") return Millis(number * 60'000);
  return std::nullopt;
}

std::optional<int> parse_number(std::string_view text, int most) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > most) return std::nullopt;
  return number;
}

std::optional<UrlUser> parse_user(std::string_view text) {
  const auto colon = text.find(':');
  auto name = percent_decoded(text.substr(0, colon));
  auto password = percent_decoded(colon == std::string_view::npos ? std::string_view{}
                                                                  : text.substr(colon + 1));
  if (!name || !password) return std::nullopt;
  return UrlUser{std::move(*name), std::move(*password)};
}

std::optional<HostAndPort> parse_host_and_port(std::string_view text) {
  std::size_t end = 0;  // of the host, with its brackets
  HostAndPort parts;
  if (text.starts_with('[')) {
    end = text.find(']') + 1;
    if (end == 0) return std::nullopt;
    parts.host = text.substr(1, end - 2);
  } else {
    end = std::min(text.find(':'), text.size());
    parts.host = text.substr(0, end);
  }
  if (end == text.size()) return parts;
  parts.port = parse_number(text.substr(end + 1), 65535);
  if (text[end] != ':' || !parts.port || *parts.port == 0) return std::nullopt;
  return parts;
}

std::string host_and_port(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

UrlParts split_url(std::string_view url) {
  const std::string_view rest = url.substr(url.find("://") + 3);
  const auto question = rest.find('?');
  if (question == std::string_view::npos) return {rest, {}};
  return {rest.substr(0, question), rest.substr(question + 1)};
}

Result<void> take_options(std::string_view options, const TakeOption& take) {
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find('&'));
    options.remove_prefix(std::min(option.size() + 1, options.size()));
    if (option.empty()) continue;
    const auto equals = option.find('=');
    // Both are parts of the option, also if the value is empty.
    const std::string_view value = option.substr(std::min(equals, option.size() - 1) + 1);
    if (auto taken = take(option.substr(0, equals), value); !taken) return taken;
  }
  return {};
}

Result<std::string> without_own_options(std::string_view url, const IsOurs& is_ours) {
  const auto question = std::min(url.find('?'), url.size());
  std::string rest(url.substr(0, question));
  char separator = '?';
  auto taken = take_options(
      url.substr(std::min(question + 1, url.size())),
      [&](std::string_view name, std::string_view value) -> Result<void> {
        const auto ours = is_ours(name, value);
        if (!ours) return ours.error();
        if (*ours) return {};
        // As it was written: with its '=' if it has one.
        const auto end = std::max(name.data() + name.size(), value.data() + value.size());
        rest += separator;
        rest += std::string_view(name.data(), static_cast<std::size_t>(end - name.data()));
        separator = '&';
        return {};
      });
  if (!taken) return taken.error();
  return rest;
}

}  // namespace baton::store
