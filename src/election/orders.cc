#include "election/orders.h"

namespace baton::election {
namespace {

constexpr std::string_view kResign = "resign";
constexpr std::string_view kTransfer = "transfer to ";

}  // namespace

std::string resign_order(const std::string& why) {
  return why.empty() ? std::string(kResign) : std::string(kResign) + ": " + why;
}

std::string transfer_order(const std::string& node) { return std::string(kTransfer) + node; }

std::optional<std::string> successor_in(std::string_view reason) {
  if (!reason.starts_with(kTransfer) || reason.size() == kTransfer.size()) return std::nullopt;
  return std::string(reason.substr(kTransfer.size()));
}

}  // namespace baton::election
