#include "store/postgres/former_grants.h"

#include <algorithm>
#include <functional>

namespace baton::store::postgres {
namespace {

constexpr std::uint8_t kMostMistakes = 7;

std::uint64_t hash_of(const std::string& key) { return std::hash<std::string>()(key); }
std::uint32_t mark_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32) | 1U; }

}  // namespace

bool FormerGrants::Terms::are_of(const Request& acquire) const {
  return mode == acquire.targets[0].mode && ttl == acquire.ttl &&
         at_least_for == acquire.at_least_for && predicate == acquire.predicate &&
         owner == acquire.owner && channel == acquire.channel && metadata == acquire.metadata;
}

// Two names of one mark are no harm: a token belongs to one name.
FormerGrants::Place* FormerGrants::find(const std::string& key) {
  if (shelves_.empty()) return nullptr;
  const std::uint64_t hash = hash_of(key);
  Shelf& shelf = shelves_[hash % kShelves];
  const auto it = std::find_if(shelf.begin(), shelf.end(),
                               [mark = mark_of(hash)](const Place& p) { return p.mark == mark; });
  return it == shelf.end() ? nullptr : &*it;
}

std::optional<Token> FormerGrants::guess(const Request& acquire) {
  Place* const place = find(acquire.targets[0].key);
  if (place == nullptr) return std::nullopt;
  // Terms of a number that is too old have been given up.
  if (newest_ - place->terms >= terms_.size()) return std::nullopt;
  if (!terms_[place->terms % terms_.size()].are_of(acquire)) return std::nullopt;
  if (place->pause > 0) {
    --place->pause;
    return std::nullopt;
  }
  return place->token;
}

void FormerGrants::granted(const Request& acquire, Token token, bool guessed) {
  const std::string& key = acquire.targets[0].key;
  Place* place = find(key);
  if (place == nullptr) {
    if (shelves_.empty()) shelves_.resize(kShelves);
    const std::uint64_t hash = hash_of(key);
    Shelf& shelf = shelves_[hash % kShelves];
    std::shift_right(shelf.begin(), shelf.end(), 1);
    place = &shelf.front();
    *place = {.mark = mark_of(hash)};
  }
  place->token = token;
  place->terms = number_of(acquire);
  if (guessed) place->mistakes = 0;
}

void FormerGrants::was_wrong(const Request& acquire) {
  Place* const place = find(acquire.targets[0].key);
  if (place == nullptr) return;
  place->mistakes = std::min<std::uint8_t>(place->mistakes + 1, kMostMistakes);
  place->pause = static_cast<std::uint8_t>((1U << place->mistakes) - 1);
}

std::uint64_t FormerGrants::number_of(const Request& acquire) {
  for (std::uint64_t number = newest_; newest_ - number < terms_.size(); --number) {
    if (terms_[number % terms_.size()].are_of(acquire)) return number;
  }
  ++newest_;
  terms_[newest_ % terms_.size()] = {acquire.targets[0].mode, acquire.ttl,   acquire.at_least_for,
                                     acquire.predicate,       acquire.owner, acquire.channel,
                                     acquire.metadata};
  return newest_;
}

}  // namespace baton::store::postgres
