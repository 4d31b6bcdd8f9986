#include "capi/boundary.h"

#include "baton/version.h"

namespace baton::capi {
namespace {

// Where to cut a text after at most `most` bytes, so that no character is cut in two.
std::size_t whole_characters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return most;
}

void fill(baton_error* out, int code, std::string_view message, const Error* error) noexcept {
  if (out == nullptr || out->size < sizeof(baton_error)) return;
  out->code = code;
  out->in_doubt = error != nullptr && error->in_doubt ? 1 : 0;
  out->retryable = error != nullptr && error->retryable ? 1 : 0;
  out->reserved = 0;
  out->retry_after_ms = error != nullptr ? error->retry_after.count() : 0;
  const std::size_t length = whole_characters(message, sizeof(out->message) - 1);
  std::memcpy(out->message, message.data(), length);
  out->message[length] = '\0';
}

}  // namespace

static_assert(static_cast<int>(Code::bad_name) + 1 == BATON_BAD_NAME);
static_assert(static_cast<int>(Code::timed_out) + 1 == BATON_TIMED_OUT);
static_assert(static_cast<int>(Code::lost) + 1 == BATON_LOST);
static_assert(static_cast<int>(Code::unavailable) + 1 == BATON_UNAVAILABLE);
static_assert(static_cast<int>(Code::fenced) + 1 == BATON_FENCED);
static_assert(static_cast<int>(Code::unauthorized) + 1 == BATON_UNAUTHORIZED);

int code_of(Code code) { return static_cast<int>(code) + 1; }

int told(baton_error* out, const Error& error) noexcept {
  const int code = code_of(error.code);
  fill(out, code, error.message, &error);
  return code;
}

int told(baton_error* out, int code, std::string_view message) noexcept {
  fill(out, code, message, nullptr);
  return code;
}

int done(baton_error* out) noexcept { return told(out, BATON_OK, ""); }

std::size_t copy_out(std::string_view text, char* buffer, std::size_t size) noexcept {
  if (buffer != nullptr && size > 0) {
    const std::size_t length = whole_characters(text, size - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  }
  return text.size();
}

Result<std::map<std::string, std::string>> read_pairs(const char* const* pairs, const char* what) {
  constexpr std::size_t kMostPairs = 1024;
  std::map<std::string, std::string> read;
  for (; pairs != nullptr && pairs[0] != nullptr; pairs += 2) {
    if (pairs[1] == nullptr) return bad_request(std::string(what) + " have a name without a value");
    if (read.size() == kMostPairs) return bad_request(std::string(what) + " are too many");
    read.insert_or_assign(pairs[0], pairs[1]);
  }
  return read;
}

}  // namespace baton::capi

extern "C" {

const char* baton_version(void) noexcept {
  static_assert(*baton::version.end() == '\0');
  return baton::version.data();
}

const char* baton_code_name(int code) noexcept {
  if (code == BATON_OK) return "ok";
  if (code == BATON_PENDING) return "pending";
  if (code == BATON_INTERNAL) return "internal";
  if (code < BATON_BAD_NAME || code > BATON_UNAUTHORIZED) return "unknown";
  return baton::to_string(static_cast<baton::Code>(code - 1)).data();
}

}  // extern "C"
