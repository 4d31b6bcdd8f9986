#include "apps/documents/notification/rules.h"

#include "apps/documents/common/topology.h"

namespace baton::documents::notification {
namespace {

std::string reasons_of(const nlohmann::json& payload) {
  std::string text;
  const auto reasons = payload.find("reasons");
  if (reasons == payload.end() || !reasons->is_array()) return text;
  for (const auto& reason : *reasons) {
    if (reason.is_object()) text += "\n- " + reason.value("message", "");
  }
  return text;
}

}  // namespace

bool is_channel(std::string_view channel) {
  return channel == kEmail || channel == kSms || channel == kPush;
}

std::vector<std::string_view> channels_of(std::string_view event) {
  if (event == type::validated) return {kPush};
  if (event == type::rejected) return {kEmail, kPush};
  if (event == type::enriched) return {kEmail};
  if (event == type::failed) return {kEmail, kSms};
  return {};
}

Text text_of(std::string_view event, const nlohmann::json& payload) {
  const std::string title = "'" + payload.value("title", "") + "'";
  if (event == type::validated) return {title + " is valid", "Your document was accepted."};
  if (event == type::rejected) {
    return {title + " was rejected", "Your document was rejected:" + reasons_of(payload)};
  }
  if (event == type::enriched) {
    return {title + " is ready", "Your document is ready. It was classified as " +
                                     payload.value("classification", "") + "."};
  }
  return {title + " could not be processed",
          "Your document could not be processed. We are looking into it."};
}

}  // namespace baton::documents::notification
