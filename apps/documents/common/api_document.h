#pragma once

// /openapi.json: what common/openapi.json says of every service, and a service's own openapi.json
// on top. document_api_test compares it with the routes, and api_*_test with the answers.

#include <string>
#include <string_view>

namespace baton::documents {

// `own` may be empty. Both are merged as RFC 7396 says, and each operation gets the answers that
// any may have, unless it describes them itself.
[[nodiscard]] std::string api_document(const std::string& service, std::string_view own);

}  // namespace baton::documents
