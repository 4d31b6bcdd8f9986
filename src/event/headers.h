#pragma once

#include <map>
#include <string>
#include <string_view>

#include "baton/export.h"
#include "baton/result.h"

namespace baton::event {

using Headers = std::map<std::string, std::string>;

// As they are kept in tables: a JSON object of texts.
[[nodiscard]] BATON_EXPORT std::string print_headers(const Headers& headers);

// `bad_store`: anything else. A value that is no text is taken as it is written.
[[nodiscard]] BATON_EXPORT Result<Headers> parse_headers(std::string_view text);

}  // namespace baton::event
