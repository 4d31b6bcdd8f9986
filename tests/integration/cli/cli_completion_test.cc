// The completion scripts know all that can be typed.

#include <fstream>
#include <set>

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

class CliCompletion : public CliTest {
 protected:
  using Offered = std::set<std::string>;

  void SetUp() override { std::ofstream(dir_ / "script") << script("bash"); }

  std::string script(const std::string& shell) const { return baton({"completion", shell}).out; }

  // What bash offers for the last of these words, with the script itself.
  Offered offered(Words line) const {
    const std::string drive =
        "source ./script && COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMP_LINE=\"$*\" && "
        "_baton && printf '%s\\n' \"${COMPREPLY[@]}\"";
    Words argv{"bash", "-c", drive, "bash", "baton"};
    argv.insert(argv.end(), line.begin(), line.end());
    return printed(std::move(argv));
  }

  // What a shell prints, a line each; the scripts ask the program that is tested.
  Offered printed(Words shell) const {
    auto with = options({});
    with.argv = std::move(shell);
    with.env["PATH"] =
        std::filesystem::path(BATON_PROGRAM).parent_path().string() + ":" + std::getenv("PATH");
    const auto done = run(std::move(with));
    EXPECT_EQ(done.status.code, 0) << done.err;
    EXPECT_EQ(done.err, "");
    Offered all;
    std::istringstream lines(done.out);
    for (std::string word; std::getline(lines, word);) all.insert(word);
    return all;
  }

  static Offered set_of(const Words& words) { return {words.begin(), words.end()}; }

  const Offered stores_{"sqlite:",  "postgres://", "postgres-advisory://",
                        "redis://", "etcd://",     "k8s://"};
  const Offered databases_{"sqlite:", "postgres://", "redis://", "redis+unix://"};
};

constexpr const char* kLasting = "echo ready; while :; do sleep 0.05; done";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether it stands by itself, as "run" does not in "prune".
bool has_word(const std::string& text, const std::string& word) {
  const auto part_of_word = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-');
  };
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !part_of_word(at - 1)) && !part_of_word(at + word.size())) return true;
  }
  return false;
}

TEST_F(CliCompletion, bash_offers_the_commands_and_options_that_help_shows) {
  for (const Help& help : all_help()) {
    Words line = help.command;
    if (!help.subcommands.empty()) {
      line.emplace_back("");
      auto words = offered(line);
      std::erase_if(words, [](const std::string& word) { return word.starts_with("--"); });
      EXPECT_EQ(words, set_of(help.subcommands)) << help.text;
      line.pop_back();
    }
    line.emplace_back("--");
    auto options = offered(line);
    options.erase("--");  // of run and elect: what follows it is not ours
    EXPECT_EQ(options, set_of(help.options)) << help.text;
  }
}

TEST_F(CliCompletion, every_script_has_every_command_and_option_that_help_shows) {
  const auto all = all_help();
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string text = script(shell);
    for (const Help& help : all) {
      for (const auto& word : help.subcommands) {
        EXPECT_TRUE(has_word(text, word)) << shell << ": " << word;
      }
      for (const auto& option : help.options) {
        const std::string written = shell == "fish" ? "-l " + option.substr(2) : option;
        EXPECT_TRUE(has_word(text, written)) << shell << ": " << written;
      }
    }
  }
}

TEST_F(CliCompletion, every_script_offers_all_stores) {
  EXPECT_EQ(offered({"lock", "find", "--store", ""}), stores_);
  EXPECT_EQ(offered({"--store", "postgres"}), (Offered{"postgres://", "postgres-advisory://"}));
  EXPECT_EQ(offered({"fence", "install", "--database", ""}), databases_);
  std::string zsh = script("zsh");
  std::erase(zsh, '\\');  // its colons are escaped
  for (const std::string& text : {zsh, script("fish")}) {
    for (const auto& urls : {stores_, databases_}) {
      for (const auto& url : urls) EXPECT_TRUE(has(text, url)) << url << "\n" << text;
    }
  }
}

TEST_F(CliCompletion, bash_completes_words_that_have_begun_and_values) {
  EXPECT_EQ(offered({"l"}), (Offered{"leader", "lock"}));
  EXPECT_EQ(offered({"lock", "s"}), (Offered{"show", "stats"}));
  EXPECT_EQ(offered({"lock", "break", "job", "--re"}), (Offered{"--reason", "--region"}));
  EXPECT_EQ(offered({"run", "job", "--mode", "s"}), Offered{"shared"});
  EXPECT_EQ(offered({"completion", ""}), (Offered{"bash", "zsh", "fish", "--json", "--help"}));
  EXPECT_EQ(offered({"run", "job", "--", "ls", "--"}), Offered{""}) << "that is the user's own";
}

TEST_F(CliCompletion, bash_knows_a_command_behind_options_and_their_values) {
  const Offered verbs{"find", "list", "show", "break", "forget", "stats", "--help"};
  EXPECT_EQ(offered({"--region", "EU", "--json", "lock", ""}), verbs);
  // As bash splits sqlite:locks.db, and a URL with a port.
  EXPECT_EQ(offered({"--store", "sqlite", ":", "locks.db", "lock", ""}), verbs);
  EXPECT_EQ(offered({"--store", "redis", ":", "//db", ":", "6379", "lock", ""}), verbs);
  EXPECT_EQ(offered({"lock", "--region", "EU", "stats", "--t"}), Offered{"--top"});
}

TEST_F(CliCompletion, a_policy_is_completed_as_a_file) {
  EXPECT_EQ(offered({"policy", "apply", "scr"}), Offered{"script"});
}

TEST_F(CliCompletion, bash_offers_the_locks_that_there_are) {
  const auto job = hold("nightly/eu", kLasting);
  const auto other = hold("other", kLasting);
  const auto odd = hold("$(touch made)", kLasting);
  EXPECT_EQ(offered({"run", ""}), (Offered{"nightly/eu", "other"}));
  EXPECT_EQ(offered({"lock", "show", "n"}), Offered{"nightly/eu"});
  EXPECT_EQ(offered({"lock", "break", "--json", "other", "--rea"}), Offered{"--reason"});
  EXPECT_FALSE(has(baton({"completion", "locks"}).out, "touch"));
  EXPECT_EQ(baton({"completion", "locks", "--json"}).out,
            "{\"names\":[\"nightly/eu\",\"other\"]}\n");
}

TEST_F(CliCompletion, bash_offers_the_elections_that_there_are) {
  const auto leader = start({"elect", "views/orders", "--", "sh", "-c", kLasting});
  ASSERT_TRUE(leader->wait_for_out("ready"));
  EXPECT_EQ(offered({"leader", "resign", ""}), Offered{"views/orders"});
  EXPECT_EQ(offered({"elect", "v"}), Offered{"views/orders"});
}

TEST_F(CliCompletion, fish_offers_the_names_that_there_are) {
  const auto job = hold("nightly/eu", kLasting);
  const auto leader = start({"elect", "views", "--", "sh", "-c", kLasting});
  ASSERT_TRUE(leader->wait_for_out("ready"));
  std::ofstream(dir_ / "fish") << script("fish");
  const auto offers = [&](const std::string& line) {
    return printed({"fish", "--no-config", "-c", "source fish; complete -C '" + line + "'"});
  };
  EXPECT_TRUE(offers("baton run ").contains("nightly/eu"));
  EXPECT_EQ(offers("baton lock show n"), Offered{"nightly/eu"});
  EXPECT_EQ(offers("baton leader resign v"), Offered{"views"});
  const std::string typed = store();
  env_["BATON_STORE"] = "sqlite:nowhere.db";
  EXPECT_EQ(offers("baton lock show n"), Offered{});
  EXPECT_EQ(offers("baton lock show --store " + typed + " n"), Offered{"nightly/eu"});
}

// With stand-ins for what is there only while zsh completes a line that somebody types.
TEST_F(CliCompletion, zsh_offers_the_names_that_there_are) {
  const auto job = hold("nightly/eu", kLasting);
  const auto leader = start({"elect", "views", "--", "sh", "-c", kLasting});
  ASSERT_TRUE(leader->wait_for_out("ready"));
  std::ofstream(dir_ / "zsh") << script("zsh");
  const auto offers = [&](const std::string& line) {
    return printed({"zsh", "-f", "-c",
                    "words=(" + line +
                        " \"\") CURRENT=$#words\n"
                        "compadd() { print -l -- ${(P)@[-1]} }\n"
                        "_arguments() {\n"
                        "  for word; do [[ $word != *:_baton_names* ]] || ${=word##*:}; done\n"
                        "}\n"
                        ". ./zsh"});
  };
  EXPECT_TRUE(offers("baton run").contains("nightly/eu"));
  EXPECT_TRUE(offers("baton lock break").contains("nightly/eu"));
  EXPECT_EQ(offers("baton leader show"), Offered{"views"});
  const std::string typed = store();
  env_["BATON_STORE"] = "sqlite:nowhere.db";
  EXPECT_FALSE(offers("baton lock show").contains("nightly/eu"));
  EXPECT_TRUE(offers("baton lock show --store " + typed).contains("nightly/eu"));
}

TEST_F(CliCompletion, names_come_from_the_store_that_is_typed) {
  const auto job = hold("nightly", kLasting);
  const std::string path = store().substr(store().find(':') + 1);
  env_["BATON_STORE"] = "sqlite:nowhere.db";
  EXPECT_FALSE(offered({"lock", "show", ""}).contains("nightly"));
  const std::string drive =
      "source ./script && COMP_WORDS=(baton lock show --store sqlite : " + path +
      " n) COMP_CWORD=7 COMP_LINE='baton lock show --store sqlite:" + path +
      " n' && _baton && echo \"${COMPREPLY[@]}\"";
  EXPECT_EQ(printed({"bash", "-c", drive}), Offered{"nightly"});
}

TEST_F(CliCompletion, without_a_store_nothing_is_offered_said_or_made) {
  env_["BATON_STORE"] = "redis://:secret@127.0.0.1:1";
  const auto words = offered({"lock", "show", ""});  // which sees that nothing is on stderr
  EXPECT_TRUE(words.contains("--predicate"));
  for (const auto& word : words) EXPECT_FALSE(has(word, "secret")) << word;
  env_["BATON_STORE"] = "sqlite:nowhere.db";
  EXPECT_EQ(baton({"completion", "locks"}).out, "");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "nowhere.db"));
}

}  // namespace
}  // namespace baton::test
