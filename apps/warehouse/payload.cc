#include "apps/warehouse/payload.h"

#include "json/json.h"

namespace baton::warehouse {

std::string payload_of(const ObserverType& type, const std::string& channel, const sql::Row& row) {
  nlohmann::ordered_json json{{"id", row.text(1)}, {"channel", channel}};
  for (std::size_t i = 0; i < type.columns.size(); ++i) json[type.columns[i]] = row.text(i + 2);
  // What is no UTF-8 in the source must not end the poll.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace baton::warehouse
