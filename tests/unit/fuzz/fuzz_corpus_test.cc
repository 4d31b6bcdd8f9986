// Every fuzz target still compiles, and keeps its promises for what its corpus holds and for a few
// bad bytes. `./dev fuzz` looks for more. A broken promise ends the program.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

// What CMakeLists.txt calls the entry point of each, which is the same in all.
extern "C" {
int fuzz_apply(const std::uint8_t* data, std::size_t size);
int fuzz_cron(const std::uint8_t* data, std::size_t size);
int fuzz_cron_file(const std::uint8_t* data, std::size_t size);
int fuzz_crontab(const std::uint8_t* data, std::size_t size);
int fuzz_document(const std::uint8_t* data, std::size_t size);
int fuzz_etcd(const std::uint8_t* data, std::size_t size);
int fuzz_http(const std::uint8_t* data, std::size_t size);
int fuzz_jobs(const std::uint8_t* data, std::size_t size);
int fuzz_kubeconfig(const std::uint8_t* data, std::size_t size);
int fuzz_lease(const std::uint8_t* data, std::size_t size);
int fuzz_name(const std::uint8_t* data, std::size_t size);
int fuzz_policy(const std::uint8_t* data, std::size_t size);
int fuzz_redis(const std::uint8_t* data, std::size_t size);
int fuzz_signal(const std::uint8_t* data, std::size_t size);
int fuzz_target(const std::uint8_t* data, std::size_t size);
}

namespace baton::test {
namespace {

namespace fs = std::filesystem;

using EntryPoint = int (*)(const std::uint8_t*, std::size_t);

const fs::path kFuzz = BATON_FUZZ_DIR;
const std::map<std::string, EntryPoint> kTargets = {
    {"apply", fuzz_apply},     {"cron", fuzz_cron},         {"cron_file", fuzz_cron_file},
    {"crontab", fuzz_crontab}, {"document", fuzz_document}, {"etcd", fuzz_etcd},
    {"http", fuzz_http},       {"jobs", fuzz_jobs},         {"kubeconfig", fuzz_kubeconfig},
    {"lease", fuzz_lease},     {"name", fuzz_name},         {"policy", fuzz_policy},
    {"redis", fuzz_redis},     {"signal", fuzz_signal},     {"target", fuzz_target}};

void feed(EntryPoint target, const std::string& bytes) {
  EXPECT_EQ(target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
}

TEST(FuzzTargets, are_all_here_and_each_has_a_corpus) {
  std::set<std::string> here;
  std::set<std::string> sources;
  std::set<std::string> corpora;
  for (const auto& [name, target] : kTargets) here.insert(name);
  for (const auto& entry : fs::directory_iterator(kFuzz)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".cc") sources.insert(name.substr(name.find('_') + 1));
  }
  for (const auto& entry : fs::directory_iterator(kFuzz / "corpus")) {
    EXPECT_FALSE(fs::is_empty(entry.path())) << entry.path();
    corpora.insert(entry.path().filename());
  }
  EXPECT_EQ(sources, here);
  EXPECT_EQ(corpora, here);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, target] : kTargets) all.push_back(name);
  return all;
}

class FuzzTarget : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(fuzz, FuzzTarget, ::testing::ValuesIn(names()),
                         [](const auto& name) { return name.param; });

std::string nested_objects(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += R"({"a":)";
  return text;
}

TEST_P(FuzzTarget, keeps_its_promises_for_its_corpus_and_for_bad_bytes) {
  const EntryPoint target = kTargets.at(GetParam());
  // The last ones are deeper than any stack: 120,000 levels ended every client once.
  for (const std::string& bad :
       {std::string(), std::string(1, '\0'), std::string("\xff\xfe"), std::string("\xc3\x28"),
        std::string(4096, '%'), std::string(200'000, '['), nested_objects(200'000)}) {
    feed(target, bad);
  }
  for (const auto& entry : fs::directory_iterator(kFuzz / "corpus" / GetParam())) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(file), {}};
    feed(target, good);
    // Cut off, and with a bad byte, at up to 64 places.
    for (std::size_t at = 0; at < good.size(); at += good.size() / 64 + 1) {
      feed(target, good.substr(0, at));
      std::string spoilt = good;
      spoilt[at] = '\xff';
      feed(target, spoilt);
    }
  }
}

}  // namespace
}  // namespace baton::test
