#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::store::postgres {

// The options in a store URL: libpq's own, and ours, which start with baton_.
struct Settings {
  std::vector<std::pair<std::string, std::string>> libpq;  // keyword, value
  std::string location;                                    // the URL without its password
  std::vector<std::string> secrets;                        // never to be printed
  Millis apply_limit{5000};                                // baton_apply_timeout
  std::string schema = "baton";                            // what the store keeps its tables in

  // The server cancels a statement after half of the time that a request has in all, and no
  // statement is sent after send_limit(). The rest is for the network and the commit.
  [[nodiscard]] Millis statement_timeout() const { return apply_limit / 2; }
  [[nodiscard]] Millis send_limit() const { return apply_limit * 2 / 5; }
  [[nodiscard]] Millis lock_timeout() const { return apply_limit / 5; }
};

[[nodiscard]] Result<Settings> parse_settings(std::string_view url);

// The command that brings the schema up to date. It has no password: if the URL has one, says so.
[[nodiscard]] std::string migrate_command(const Settings& settings);

// The text without any of the secrets.
[[nodiscard]] std::string scrub(std::string text, const Settings& settings);

}  // namespace baton::store::postgres
