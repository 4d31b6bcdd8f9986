#pragma once

#include <functional>
#include <optional>
#include <string>

#include "baton/result.h"
#include "http/message.h"

namespace baton::gateway {

// The token that clients must send: the first line of `file`, else $BATON_GATEWAY_TOKEN, else
// nothing. Never from the command line, which every user of the machine can read. An error if it is
// shorter than 16 characters or has others than RFC 6750 allows.
[[nodiscard]] Result<std::optional<std::string>> read_bearer_token(const std::string& file);

// Answers 401 unless a request has "Authorization: Bearer `token`". /healthz, /readyz and /metrics
// stay open: probes and scrapers have no token. For http::ServerOptions::refuse.
[[nodiscard]] std::function<std::optional<http::Response>(const http::Request&)> requiring(
    const std::string& token);

}  // namespace baton::gateway
