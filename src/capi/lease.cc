#include "baton/fence_token.h"
#include "capi/client.h"
#include "capi/held.h"
#include "capi/wait.h"

namespace baton::capi {
namespace {

// Calls that give a number: of a handle that is refused it is `if_refused`.
template <typename Value, typename Ask>
Value ask_lease(baton_lease* lease, Value if_refused, Ask&& ask) noexcept {
  return guarded_value<Value>(if_refused, [&]() -> Value {
    const auto found = object_of<Held>(lease);
    return found ? static_cast<Value>(ask(**found)) : if_refused;
  });
}

// Calls that give a text.
template <typename Ask>
std::size_t text_of(baton_lease* lease, char* buffer, std::size_t size, Ask&& ask) noexcept {
  return guarded_value<std::size_t>(0, [&]() -> std::size_t {
    const auto found = object_of<Held>(lease);
    return copy_out(found ? ask(**found) : std::string(), buffer, size);
  });
}

Result<ReleaseOptions> read_release(const baton_release_options* given) {
  const auto read = read_struct(given);
  if (!read) return read.error();
  ReleaseOptions options;
  options.note = note_of(read->note_ordinal, read->note_text);
  options.to = text_or(read->to, "");
  options.timeout = millis_or(read->timeout_ms, options.timeout);
  return options;
}

// For calls with an error.
template <typename Change>
int change_lease(baton_lease* lease, baton_error* error, Change&& change) noexcept {
  return guarded(error, [&] {
    const auto found = object_of<Held>(lease);
    if (!found) return told(error, found.error());
    const Result<void> changed = change(**found);
    return changed ? done(error) : told(error, changed.error());
  });
}

}  // namespace
}  // namespace baton::capi

extern "C" {

using namespace baton::capi;  // NOLINT(google-build-using-namespace): the functions are the API

int baton_lease_valid(baton_lease* lease) noexcept {
  return ask_lease(lease, 0, [](Held& held) { return held.valid() ? 1 : 0; });
}

int64_t baton_lease_remaining_ms(baton_lease* lease) noexcept {
  return ask_lease<int64_t>(lease, 0, [](Held& held) { return held.lease().remaining().count(); });
}

int baton_lease_fd(baton_lease* lease, int* fd, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto found = object_of<Held>(lease);
    return found ? give_fd((*found)->fd(), fd, error) : told(error, found.error());
  });
}

size_t baton_lease_why_lost(baton_lease* lease, char* buffer, size_t size) noexcept {
  return text_of(lease, buffer, size, [](Held& held) { return held.why_lost(); });
}

size_t baton_lease_key(baton_lease* lease, char* buffer, size_t size) noexcept {
  return text_of(lease, buffer, size, [](Held& held) { return held.lease().key(); });
}

size_t baton_lease_grant(baton_lease* lease, char* buffer, size_t size) noexcept {
  return text_of(lease, buffer, size,
                 [](Held& held) { return baton::to_string(held.lease().grant()); });
}

int baton_lease_mode(baton_lease* lease) noexcept {
  return ask_lease(lease, -1, [](Held& held) { return number_of(held.lease().mode()); });
}

int64_t baton_lease_ttl_ms(baton_lease* lease) noexcept {
  return ask_lease<int64_t>(lease, 0, [](Held& held) { return held.lease().ttl().count(); });
}

uint64_t baton_lease_token(baton_lease* lease) noexcept {
  return ask_lease<uint64_t>(lease, 0, [](Held& held) { return held.lease().token(); });
}

size_t baton_lease_fence_text(baton_lease* lease, char* buffer, size_t size) noexcept {
  return text_of(lease, buffer, size,
                 [](Held& held) { return baton::print_fence_tokens(held.lease().tokens()); });
}

size_t baton_lease_token_at(baton_lease* lease, size_t index, uint64_t* token, int32_t* mode,
                            char* key, size_t size) noexcept {
  return text_of(lease, key, size, [&](Held& held) -> std::string {
    const auto tokens = held.lease().tokens();
    if (index >= tokens.size()) return {};
    if (token != nullptr) *token = tokens[index].token;
    if (mode != nullptr) *mode = number_of(tokens[index].mode);
    return tokens[index].key;
  });
}

size_t baton_lease_note(baton_lease* lease, int64_t* ordinal, char* buffer, size_t size) noexcept {
  return text_of(lease, buffer, size, [&](Held& held) {
    auto note = held.lease().note();
    if (ordinal != nullptr) *ordinal = note.ordinal;
    return std::move(note.text);
  });
}

int baton_lease_set_note(baton_lease* lease, const int64_t* ordinal, const char* text,
                         int64_t timeout_ms, baton_error* error) noexcept {
  return change_lease(lease, error, [&](Held& held) {
    return held.lease().set_note(note_of(ordinal, text),
                                 millis_or(timeout_ms, baton::Millis(2000)));
  });
}

int baton_lease_convert(baton_lease* lease, int32_t mode, int64_t wait_ms,
                        baton_error* error) noexcept {
  return change_lease(lease, error, [&](Held& held) -> baton::Result<void> {
    const auto asked = mode_of(mode);
    if (!asked) return asked.error();
    return held.lease().convert(
        *asked, wait_ms == BATON_WAIT_LONGEST ? baton::kMaxWait : baton::Millis(wait_ms));
  });
}

int baton_lease_release(baton_lease* lease, const baton_release_options* options,
                        baton_error* error) noexcept {
  return change_lease(lease, error, [&](Held& held) -> baton::Result<void> {
    const auto read = read_release(options);
    if (!read) return read.error();
    return held.release(*read);
  });
}

int baton_lease_free(baton_lease* lease, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto freed = take_object<Held>(lease);
    return freed ? done(error) : told(error, freed.error());
  });
}

}  // extern "C"
