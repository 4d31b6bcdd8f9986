// What a program that was compiled against libbaton.so.0 counts on: the symbols and their versions,
// and where the fields of the structs are. libbaton.abi has it; a line is only ever added, and a
// struct of options grows at its end.

#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baton/baton.h"
#include "support/process.h"

namespace baton::test {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "symbol baton_open@@BATON_0": what the library defines for others.
Lines symbols() {
  std::set<std::string> found;
  const auto read = run({.argv = {BATON_READELF_PROGRAM, "--dyn-syms", "-W", BATON_C_LIBRARY}});
  EXPECT_TRUE(read.status.success()) << read.err;
  for (const std::string& line : lines_of(read.out)) {
    std::istringstream words(line);
    std::string number, value, size, type, bind, visibility, section, name;
    words >> number >> value >> size >> type >> bind >> visibility >> section >> name;
    if (name.empty() || section == "UND" || section == "Ndx" || bind == "LOCAL") continue;
    if (section == "ABS") continue;  // the name of the version itself
    found.insert("symbol " + name);
  }
  return {found.begin(), found.end()};
}

class Layout {
 public:
  void type(const std::string& name, std::size_t size) { add("size " + name, size); }
  void field(const std::string& name, std::size_t offset) { add("offset " + name, offset); }
  [[nodiscard]] const Lines& lines() const { return lines_; }

 private:
  void add(const std::string& what, std::size_t number) {
    lines_.push_back(what + " " + std::to_string(number));
  }
  Lines lines_;
};

#define FIELD(type, name) layout.field(#type "." #name, offsetof(type, name))

Lines layouts() {
  Layout layout;
  layout.type("baton_error", sizeof(baton_error));
  FIELD(baton_error, code);
  FIELD(baton_error, in_doubt);
  FIELD(baton_error, retryable);
  FIELD(baton_error, retry_after_ms);
  FIELD(baton_error, message);
  layout.type("baton_client_options", sizeof(baton_client_options));
  FIELD(baton_client_options, owner);
  FIELD(baton_client_options, open_timeout_ms);
  FIELD(baton_client_options, max_waiting);
  layout.type("baton_acquire_options", sizeof(baton_acquire_options));
  FIELD(baton_acquire_options, mode);
  FIELD(baton_acquire_options, ttl_ms);
  FIELD(baton_acquire_options, wait_ms);
  FIELD(baton_acquire_options, at_least_for_ms);
  FIELD(baton_acquire_options, region);
  FIELD(baton_acquire_options, predicate);
  FIELD(baton_acquire_options, metadata);
  FIELD(baton_acquire_options, if_ordinal_below);
  FIELD(baton_acquire_options, note_ordinal);
  FIELD(baton_acquire_options, note_text);
  layout.type("baton_release_options", sizeof(baton_release_options));
  FIELD(baton_release_options, to);
  FIELD(baton_release_options, note_ordinal);
  FIELD(baton_release_options, note_text);
  FIELD(baton_release_options, timeout_ms);
  layout.type("baton_elector_options", sizeof(baton_elector_options));
  FIELD(baton_elector_options, ttl_ms);
  FIELD(baton_elector_options, grace_ms);
  FIELD(baton_elector_options, retry_interval_ms);
  FIELD(baton_elector_options, cooldown_ms);
  FIELD(baton_elector_options, region);
  FIELD(baton_elector_options, metadata);
  FIELD(baton_elector_options, priority);
  FIELD(baton_elector_options, preempt);
  FIELD(baton_elector_options, never_lead);
  layout.type("baton_event", sizeof(baton_event));
  FIELD(baton_event, type);
  FIELD(baton_event, aggregate);
  FIELD(baton_event, payload);
  FIELD(baton_event, id);
  FIELD(baton_event, aggregate_type);
  FIELD(baton_event, exchange);
  FIELD(baton_event, routing_key);
  FIELD(baton_event, headers);
  FIELD(baton_event, correlation_id);
  FIELD(baton_event, causation_id);
  FIELD(baton_event, traceparent);
  FIELD(baton_event, version);
  FIELD(baton_event, quiet);
  return layout.lines();
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(CAbi, symbols_sizes_and_offsets_are_as_they_were) {
  std::ifstream file(BATON_ABI_FILE);
  const std::string kept(std::istreambuf_iterator<char>(file), {});
  Lines now = symbols();
  EXPECT_GT(now.size(), 30U);
  for (const std::string& line : layouts()) now.push_back(line);
  EXPECT_EQ(joined(now), kept);
}

TEST(CAbi, the_soname_has_the_version_of_the_interface) {
  const auto read = run({.argv = {BATON_READELF_PROGRAM, "-d", "-W", BATON_C_LIBRARY}});
  EXPECT_NE(read.out.find("Library soname: [libbaton.so.0]"), std::string::npos) << read.out;
}

}  // namespace
}  // namespace baton::test
