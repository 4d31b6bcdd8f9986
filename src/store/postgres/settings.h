#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::store::postgres {

// What a store URL says: libpq's own options, and ours, which start with baton_.
struct Settings {
  std::vector<std::pair<std::string, std::string>> libpq;  // keyword, value
  std::string location;                                    // the URL without its password
  std::vector<std::string> secrets;                        // never to be printed
  Millis apply_limit{5000};                                // baton_apply_timeout
  std::string schema = "baton";                            // what the store keeps its tables in

  // The server gives up first, so that nothing happens after the client has.
  [[nodiscard]] Millis statement_timeout() const { return apply_limit * 4 / 5; }
  [[nodiscard]] Millis lock_timeout() const { return apply_limit / 5; }
};

[[nodiscard]] Result<Settings> parse_settings(std::string_view url);

// The text without any of the secrets.
[[nodiscard]] std::string scrub(std::string text, const Settings& settings);

}  // namespace baton::store::postgres
