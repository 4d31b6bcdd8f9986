// Whatever is accepted as a name can be printed and read again, in every form.

#include "baton/name.h"
#include "fuzz.h"

namespace baton::fuzz {
namespace {

void check_lock_text(std::string_view text) {
  const auto parsed = parse_lock_text(text);
  if (!parsed) {
    promise(parsed.error().code == Code::bad_name, "what is refused is a bad name");
    return;
  }
  const auto& [name, mode] = *parsed;
  promise(static_cast<bool>(validate(name)), "a parsed text form is a valid name");
  const std::string printed = print(name, mode);
  const auto again = parse_lock_text(printed);
  promise(again && *again == *parsed, "a text form survives printing");
  promise(print(again->first, again->second) == printed, "and is printed in one way");
}

void check_path(std::string_view text) {
  const auto name = parse_path(text);
  if (!name) return;
  promise(static_cast<bool>(validate(*name)), "a parsed path is a valid name");
  const auto again = parse_path(print_path(*name));
  promise(again && *again == *name, "a path survives printing");
  for (const bool scoped : {false, true}) {
    const std::string key = key_of(*name, scoped);
    promise(key.size() <= 3 * kMaxNameBytes && is_valid_utf8_text(key), "a key fits a request");
    auto behind = parse_key(key);
    promise(static_cast<bool>(behind), "the key of a valid name can be read");
    if (!scoped) behind->predicate = name->predicate;
    promise(*behind == *name, "a key tells the name behind it");
  }
}

void check_key(std::string_view text) {
  const auto name = parse_key(text);
  if (!name) return;
  const std::string key = key_of(*name, !name->predicate.empty());
  const auto again = parse_key(key);
  promise(again && *again == *name, "a key survives printing");
  promise(key_of(*again, !again->predicate.empty()) == key, "and is printed in one way");
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = baton::fuzz::text_of(data, size);
  baton::fuzz::check_lock_text(text);
  baton::fuzz::check_path(text);
  baton::fuzz::check_key(text);
  return 0;
}
