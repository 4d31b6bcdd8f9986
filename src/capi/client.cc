#include "capi/client.h"

#include <array>

#include "capi/held.h"

namespace baton::capi {
namespace {

// In the order of the constants BATON_X, BATON_IS, …: the default is 0.
constexpr std::array<Mode, 6> kModes{Mode::X, Mode::IS, Mode::IX, Mode::S, Mode::U, Mode::SIX};

Result<ClientOptions> read_client_options(const baton_client_options* given) {
  const auto read = read_struct(given);
  if (!read) return read.error();
  ClientOptions options;
  options.owner = text_or(read->owner, "");
  options.open_timeout = millis_or(read->open_timeout_ms, options.open_timeout);
  if (read->max_waiting > 0) options.max_waiting = read->max_waiting;
  return options;
}

Result<std::vector<LockName>> read_names(const char* const* names, std::size_t count,
                                         const baton_acquire_options& options) {
  if (names == nullptr || count == 0) return bad_request("a lock needs a name");
  if (count > kMaxSet) {
    return Error{.code = Code::unsupported,
                 .message = "a set has at most " + std::to_string(kMaxSet) + " names"};
  }
  std::vector<LockName> read;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return bad_request("a name is NULL");
    auto name = parse_path(names[i]);
    if (!name) return name.error();
    name->region = text_or(options.region, kDefaultRegion);
    name->predicate = text_or(options.predicate, kDefaultPredicate);
    read.push_back(std::move(*name));
  }
  return read;
}

// For the three forms that block.
int acquire(baton_client* client, const char* const* names, std::size_t count,
            const baton_acquire_options* options, bool wait, baton_lease** lease,
            baton_error* error) {
  if (lease == nullptr) return told(error, bad_request("there is nowhere to put the lease"));
  *lease = nullptr;
  const auto held_by = object_of<Client>(client);
  if (!held_by) return told(error, held_by.error());
  auto asked = read_acquire(names, count, options);
  if (!asked) return told(error, asked.error());
  if (!wait) asked->options.wait = Millis(0);
  auto granted = (*held_by)->locks.acquire_all(asked->names, asked->options);
  if (!granted) return told(error, granted.error());
  *lease = new_lease(std::move(*granted));
  return done(error);
}

}  // namespace

Result<Mode> mode_of(std::int32_t mode) {
  if (mode < 0 || static_cast<std::size_t>(mode) >= kModes.size()) {
    return bad_request("the mode is none of BATON_X, BATON_IS, …");
  }
  return kModes[static_cast<std::size_t>(mode)];
}

std::int32_t number_of(Mode mode) {
  return static_cast<std::int32_t>(std::find(kModes.begin(), kModes.end(), mode) - kModes.begin());
}

NoteChange note_of(const std::int64_t* ordinal, const char* text) {
  NoteChange change{.ordinal = optional_of(ordinal)};
  if (text != nullptr) change.text = text;
  return change;
}

Result<Acquire> read_acquire(const char* const* names, std::size_t count,
                             const baton_acquire_options* given) {
  const auto read = read_struct(given);
  if (!read) return read.error();
  if (read->reserved != 0) return bad_request("a reserved field of the options is set");
  auto parsed = read_names(names, count, *read);
  if (!parsed) return parsed.error();
  const auto mode = mode_of(read->mode);
  if (!mode) return mode.error();
  auto metadata = read_pairs(read->metadata, "the metadata");
  if (!metadata) return metadata.error();
  Acquire asked{.names = std::move(*parsed)};
  asked.options.mode = *mode;
  asked.options.ttl = millis_or(read->ttl_ms, asked.options.ttl);
  asked.options.wait = read->wait_ms == BATON_WAIT_LONGEST ? kMaxWait : Millis(read->wait_ms);
  asked.options.at_least_for = Millis(read->at_least_for_ms);
  asked.options.metadata = std::move(*metadata);
  asked.options.if_ordinal_below = optional_of(read->if_ordinal_below);
  asked.options.note = note_of(read->note_ordinal, read->note_text);
  return asked;
}

}  // namespace baton::capi

extern "C" {

using namespace baton::capi;  // NOLINT(google-build-using-namespace): the functions are the API

int baton_open(const char* url, const baton_client_options* options, baton_client** client,
               baton_error* error) noexcept {
  return guarded(error, [&] {
    if (client == nullptr) {
      return told(error, baton::bad_request("there is nowhere to put the client"));
    }
    *client = nullptr;
    if (url == nullptr) return told(error, baton::bad_request("the URL of the store is NULL"));
    auto read = read_client_options(options);
    if (!read) return told(error, read.error());
    auto opened = baton::open(url, std::move(*read));
    if (!opened) return told(error, opened.error());
    *client = new_handle<baton_client>(std::make_shared<Client>(Client{std::move(*opened)}));
    return done(error);
  });
}

int baton_close(baton_client* client, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto closed = take_object<Client>(client);
    return closed ? done(error) : told(error, closed.error());
  });
}

size_t baton_owner(baton_client* client, char* buffer, size_t size) noexcept {
  return guarded_value<size_t>(0, [&]() -> size_t {
    const auto found = object_of<Client>(client);
    return copy_out(found ? (*found)->locks.owner() : "", buffer, size);
  });
}

int baton_acquire(baton_client* client, const char* name, const baton_acquire_options* options,
                  baton_lease** lease, baton_error* error) noexcept {
  return guarded(error, [&] { return acquire(client, &name, 1, options, true, lease, error); });
}

int baton_try_acquire(baton_client* client, const char* name, const baton_acquire_options* options,
                      baton_lease** lease, baton_error* error) noexcept {
  return guarded(error, [&] { return acquire(client, &name, 1, options, false, lease, error); });
}

int baton_acquire_all(baton_client* client, const char* const* names, size_t count,
                      const baton_acquire_options* options, baton_lease** lease,
                      baton_error* error) noexcept {
  return guarded(error, [&] { return acquire(client, names, count, options, true, lease, error); });
}

}  // extern "C"
