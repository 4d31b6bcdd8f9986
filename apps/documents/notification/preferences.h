#pragma once

// GET and PUT /preferences/{user}: {"email": true, "sms": false, "push": true}.

#include <string>

#include "apps/documents/common/tx.h"
#include "http/message.h"

namespace baton::documents::notification {

[[nodiscard]] bool wants(const Tx& tx, const std::string& user, std::string_view channel);

[[nodiscard]] http::Response show_preferences(sql::Connection& database,
                                              const http::Request& request);
[[nodiscard]] http::Response set_preferences(sql::Connection& database,
                                             const http::Request& request);

}  // namespace baton::documents::notification
