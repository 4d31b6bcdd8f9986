#pragma once

// Lists are answered in pages: {"items": […], "next": CURSOR}, and ?cursor=CURSOR gives the page
// behind it. A cursor is the key of the last item, so that what is added meanwhile moves nothing.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/documents/common/problem.h"
#include "apps/documents/common/tx.h"
#include "http/message.h"
#include "json/json.h"

namespace baton::documents {

inline constexpr std::int64_t kMostItems = 200;

// How to list the rows of a table. Filters are query parameters; a column that is empty is no
// filter of this list.
struct Listing {
  struct Filter {
    std::string parameter;  // documentId
    std::string condition;  // document_id = — the value comes behind it
    enum class Kind { text, time } kind = Kind::text;
    std::vector<std::string_view> choices = {};  // other texts are refused, if there are any
  };
  std::string columns;  // and the first one is the key
  std::string table;
  std::string key;           // the column that rows are ordered by
  bool key_is_uuid = false;  // else a number
  bool newest_first = false;
  std::vector<Filter> filters;
  std::function<nlohmann::json(const sql::Row&)> show;
};

// 400 for parameters that it does not know or cannot read.
[[nodiscard]] http::Response answer_list(const Tx& tx, const Listing& listing,
                                         const http::Request& request);

}  // namespace baton::documents
