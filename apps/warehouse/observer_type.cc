#include "apps/warehouse/observer_type.h"

#include <algorithm>
#include <stdexcept>

#include "policy/suggest.h"

namespace baton::warehouse {
namespace {

constexpr std::string_view kJobEnding = "-observer-poll";

std::vector<ObserverType>& registry() {
  static std::vector<ObserverType> types;
  return types;
}

bool plain(std::string_view word) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  return !word.empty() && word.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace

const std::vector<ObserverType>& observer_types() { return registry(); }

Result<const ObserverType*> observer_type(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ObserverType& type : registry()) {
    if (type.name == name) return &type;
    known.push_back(type.name);
  }
  return Error{.code = Code::bad_request,
               .message = policy::unknown_word("observer type", name, known)};
}

std::string_view type_of_job(std::string_view job) {
  if (!job.ends_with(kJobEnding)) return {};
  return job.substr(0, job.size() - kJobEnding.size());
}

Registered::Registered(ObserverType type) {
  const bool fine = plain(type.name) && plain(type.table) &&
                    std::all_of(type.columns.begin(), type.columns.end(), plain);
  if (!fine)
    throw std::invalid_argument("an observer type whose names are not plain: " + type.name);
  auto& types = registry();
  const auto place = std::lower_bound(
      types.begin(), types.end(), type,
      [](const ObserverType& a, const ObserverType& b) { return a.name < b.name; });
  if (place != types.end() && place->name == type.name) {
    throw std::invalid_argument("two observer types of one name: " + type.name);
  }
  types.insert(place, std::move(type));
}

}  // namespace baton::warehouse
