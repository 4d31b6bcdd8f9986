#include "store/redis/commands.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

namespace baton::store::redis {
namespace {

// As hiredis would send it.
std::string expected(const std::vector<std::string>& words) {
  std::vector<const char*> starts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* made = nullptr;
  const auto size =
      redisFormatCommandArgv(&made, static_cast<int>(words.size()), starts.data(), sizes.data());
  std::string bytes(made, static_cast<std::size_t>(size));
  redisFreeCommand(made);
  return bytes;
}

TEST(RedisCommands, a_word_is_given_whole_in_pieces_as_a_number_or_packed) {
  Commands commands;
  commands.begin();
  commands.word("SET");
  commands.joined({"{baton:", "DEFAULT", "}", "", ":order:7"});
  commands.number(-1'763'400'000'000'000);
  commands.packed([](Packer& out) { out.array(2).number(7).text("x"); });
  commands.packed([](Packer&) {});
  commands.word("");
  commands.end();
  EXPECT_EQ(commands.count(), 1U);
  EXPECT_EQ(commands.bytes(), expected({"SET", "{baton:DEFAULT}:order:7", "-1763400000000000",
                                        "\x92\x07\xA1x", "", ""}));
}

TEST(RedisCommands, many_commands_of_any_size_follow_each_other) {
  std::mt19937 random(7);
  const auto draw = [&](std::size_t below) { return random() % below; };
  Commands commands;
  for (int round = 0; round < 20; ++round) {
    commands.clear();
    std::string all;
    const std::size_t count = 1 + draw(5);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::string> words(1 + draw(120));
      for (auto& word : words) {
        word.resize(draw(10) == 0 ? draw(20'000) : draw(30));
        for (char& byte : word) byte = static_cast<char>(draw(256));
      }
      commands.begin();
      for (const auto& word : words) {
        const std::size_t cut = draw(word.size() + 1);
        if (draw(2) == 0) {
          commands.joined(
              {std::string_view(word).substr(0, cut), std::string_view(word).substr(cut)});
        } else {
          commands.word(word);
        }
      }
      commands.end();
      all += expected(words);
    }
    ASSERT_EQ(commands.count(), count);
    ASSERT_TRUE(commands.bytes() == all) << "round " << round;
  }
}

// The scripts read them by their places.
TEST(RedisCommands, a_packed_double_has_the_most_significant_byte_first) {
  std::string bytes;
  Packer(bytes).bare(1).real(-2);
  EXPECT_EQ(bytes, std::string_view("\x3F\xF0\0\0\0\0\0\0\xCB\xC0\0\0\0\0\0\0\0", 17));
}

}  // namespace
}  // namespace baton::store::redis
