// What a service is told: by flags, the environment and a file, in that order.

#include <array>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "apps/documents/options.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using documents::parse_command_line;
using documents::Parsed;

class DocumentSettings : public testing::Test {
 protected:
  ~DocumentSettings() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }
  void environment(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  // Gives the path.
  std::string file(const std::string& text) const {
    const std::string path = (directory_ / "docs.yaml").string();
    std::ofstream(path) << text;
    return path;
  }
  static Millis lock_ttl(const std::vector<std::string>& words) {
    const Parsed parsed = parse_command_line(words);
    EXPECT_EQ(parsed.wrong, "");
    return parsed.options.settings.lock_ttl;
  }
  static std::string wrong(const std::vector<std::string>& words) {
    return parse_command_line(words).wrong;
  }

 private:
  TempDir directory_{"settings"};
  std::vector<std::string> set_;
};

TEST_F(DocumentSettings, a_flag_counts_before_the_environment_and_that_before_the_file) {
  EXPECT_EQ(lock_ttl({"validation"}), Millis(10'000));
  const std::string path = file("lock-ttl: 11s\nvalidation:\n  lock-ttl: 12s\n");
  EXPECT_EQ(lock_ttl({"audit", "--config", path}), Millis(11'000));
  EXPECT_EQ(lock_ttl({"validation", "--config", path}), Millis(12'000));
  environment("DOCUMENTS_LOCK_TTL", "13s");
  EXPECT_EQ(lock_ttl({"validation", "--config", path}), Millis(13'000));
  EXPECT_EQ(lock_ttl({"validation", "--config", path, "--lock-ttl", "14s"}), Millis(14'000));
  EXPECT_EQ(lock_ttl({"validation", "--lock-ttl", "10s"}), Millis(10'000))
      << "also if it is typed as the default is";
}

TEST_F(DocumentSettings, every_setting_can_be_said_in_each_of_the_three_places) {
  const std::string path = file(
      "database: sqlite:file.db\nbroker: embedded:file-broker.db\nlocks: sqlite:file-locks.db\n"
      "listen: 127.0.0.1:1001\ninstance: of-the-file\nrun-file: run\nspool: spool\nlock-ttl: 1s\n"
      "grace: 2s\nmax-lag: 3s\nretry-delays: 4ms,5ms\nallow-simulation: true\nlog: text\n"
      "log-level: debug\n");
  const auto settings = parse_command_line({"ingestion", "--config", path}).options.settings;
  EXPECT_EQ(settings.database, "sqlite:file.db");
  EXPECT_EQ(settings.broker, "embedded:file-broker.db");
  EXPECT_EQ(settings.locks, "sqlite:file-locks.db");
  EXPECT_EQ(settings.listen, "127.0.0.1:1001");
  EXPECT_EQ(settings.instance, "of-the-file");
  EXPECT_EQ(settings.run_file, "run");
  EXPECT_EQ(settings.spool, "spool");
  EXPECT_EQ(settings.lock_ttl, Millis(1'000));
  EXPECT_EQ(settings.grace, Millis(2'000));
  EXPECT_EQ(settings.max_lag, Millis(3'000));
  EXPECT_EQ(settings.retry_delays, (std::vector<Millis>{Millis(4), Millis(5)}));
  EXPECT_TRUE(settings.allow_simulation);
  EXPECT_EQ(settings.log_format, observe::LogFormat::text);
  EXPECT_EQ(settings.log_level, observe::LogLevel::debug);

  environment("DOCUMENTS_CONFIG", path);
  environment("DOCUMENTS_LISTEN", "[::1]:1002");
  environment("DOCUMENTS_ALLOW_SIMULATION", "false");
  environment("DOCUMENTS_RETRY_DELAYS", "6ms");
  const auto above =
      parse_command_line({"ingestion", "--log-level", "warn", "--database", "sqlite:typed.db"})
          .options.settings;
  EXPECT_EQ(above.instance, "of-the-file") << "$DOCUMENTS_CONFIG names the file";
  EXPECT_EQ(above.listen, "[::1]:1002");
  EXPECT_FALSE(above.allow_simulation);
  EXPECT_EQ(above.retry_delays, (std::vector<Millis>{Millis(6)}));
  EXPECT_EQ(above.log_level, observe::LogLevel::warn);
  EXPECT_EQ(above.database, "sqlite:typed.db");
  EXPECT_TRUE(
      parse_command_line({"ingestion", "--allow-simulation"}).options.settings.allow_simulation);
}

TEST_F(DocumentSettings, a_wrong_value_is_told_with_its_place_and_what_is_allowed) {
  EXPECT_EQ(wrong({"audit", "--lock-ttl", "soon"}).find("--lock-ttl: write a time from 500ms to "),
            0U)
      << wrong({"audit", "--lock-ttl", "soon"});
  EXPECT_NE(wrong({"audit", "--lock-ttl", "1ms"}).find("not '1ms'"), std::string::npos);

  const std::string path = file("\n\nmax-lag: never\n");
  const std::string in_file = wrong({"audit", "--config", path});
  EXPECT_EQ(in_file.find(path + ": line 3: max-lag: write a time from 1s to 24h"), 0U) << in_file;

  const std::vector<std::array<std::string, 3>> rows = {
      {"DATABASE", "mysql://x", "sqlite:PATH or postgres://…"},
      {"DATABASE", "", "sqlite:PATH or postgres://…"},
      {"BROKER", "kafka:x", "embedded:PATH, rabbitmq://… or rabbitmqs://…"},
      {"LOCKS", "nowhere", "the URL of a lock store"},
      {"LISTEN", "8080", "IP:PORT"},
      {"LISTEN", "localhost:8080", "IP:PORT"},
      {"LISTEN", "127.0.0.1:70000", "IP:PORT"},
      {"GRACE", "-1s", "a time from 0s to 24h"},
      {"GRACE", "25h", "a time from 0s to 24h"},
      {"RETRY_DELAYS", "", "at least one time, as 1s,2s,4s"},
      {"RETRY_DELAYS", "1s,x", "times with commas between"},
      {"ALLOW_SIMULATION", "yes", "true or false"},
      {"LOG", "xml", "json or text"},
      {"LOG_LEVEL", "loud", "debug, info, warn or error"},
      {"SPOOL", "", "a directory"}};
  for (const auto& [name, value, allowed] : rows) {
    const std::string variable = "DOCUMENTS_" + name;
    environment(variable, value);
    const std::string said = wrong({"audit"});
    EXPECT_EQ(said.find(variable + ": write " + allowed), 0U) << said;
    ::unsetenv(variable.c_str());
  }
}

TEST_F(DocumentSettings, a_wrong_file_is_told_with_the_line) {
  const auto with = [&](const std::string& text) {
    return wrong({"audit", "--config", file(text)});
  };
  EXPECT_NE(with("lock-tll: 1s\n")
                .find("line 1: unknown setting 'lock-tll'; did you mean "
                      "'lock-ttl'?"),
            std::string::npos)
      << with("lock-tll: 1s\n");
  EXPECT_NE(with("validation:\n  grase: 1s\n").find("line 2: unknown setting 'grase'"),
            std::string::npos)
      << "also in the part of another service";
  EXPECT_NE(with("audit: 1s\n").find("line 1: audit must be a map"), std::string::npos);
  EXPECT_NE(with("grace: [1s]\n").find("line 1: grace must be text"), std::string::npos);
  EXPECT_NE(with("- a\n").find("must be a map"), std::string::npos);
  EXPECT_NE(with("a: [\n").find("docs.yaml: line "), std::string::npos);
  EXPECT_NE(wrong({"audit", "--config", "/nowhere.yaml"}).find("cannot read /nowhere.yaml"),
            std::string::npos);
}

TEST_F(DocumentSettings, no_error_and_no_help_repeats_a_url) {
  environment("DOCUMENTS_DATABASE", "postgres//ann:s3cr3t@server/x");
  environment("DOCUMENTS_POSTGRES", "postgres://ann:s3cr3t@server/x");
  EXPECT_EQ(wrong({"audit"}).find("s3cr3t"), std::string::npos);
  environment("DOCUMENTS_DATABASE", "sqlite:x.db");
  environment("DOCUMENTS_BROKER", "rabbit://ann:s3cr3t@server/x");
  EXPECT_EQ(wrong({"audit"}).find("s3cr3t"), std::string::npos);
  environment("DOCUMENTS_BROKER", "embedded:x.db");
  environment("DOCUMENTS_LOCKS", "s3cr3t");
  EXPECT_EQ(wrong({"audit"}).find("s3cr3t"), std::string::npos);
  for (const char* command : {"audit", "up", "verify"}) {
    EXPECT_EQ(parse_command_line({command, "--help"}).help.find("s3cr3t"), std::string::npos);
  }
}

TEST_F(DocumentSettings, the_servers_of_up_may_be_named_by_the_environment) {
  environment("DOCUMENTS_POSTGRES", "postgres://ann:s3cr3t@server/x");
  environment("DOCUMENTS_RABBITMQ", "rabbitmq://ann:s3cr3t@server/");
  const auto places = parse_command_line({"up"}).options.places;
  EXPECT_EQ(places.database("audit"), "postgres://ann:s3cr3t@server/documents_audit");
  EXPECT_EQ(places.broker(), "rabbitmq://ann:s3cr3t@server/");
  EXPECT_EQ(parse_command_line({"verify", "--postgres", "postgres://other/x"})
                .options.places.database("audit"),
            "postgres://other/documents_audit");
}

TEST_F(DocumentSettings, up_refuses_what_its_services_would_refuse) {
  EXPECT_EQ(wrong({"up", "--lock-ttl", "soon"}).find("--lock-ttl: write a time"), 0U);
  EXPECT_EQ(wrong({"up", "--retry-delays", "x"}).find("--retry-delays: write times"), 0U);
  EXPECT_NE(wrong({"up", "--config", file("lock-tll: 1s\n")}).find("line 1: unknown setting"),
            std::string::npos);
  EXPECT_EQ(wrong({"up"}), "");
}

TEST_F(DocumentSettings, wrong_replicas_are_told_with_what_is_wrong) {
  const auto told = [](const std::string& list, const std::string& how) {
    const std::string all = wrong({"up", "--replicas", list});
    EXPECT_EQ(all.find("--replicas: " + how), 0U) << all;
  };
  EXPECT_EQ(wrong({"up", "--replicas", "validation=3,audit=0"}), "");
  told("validation", "write SERVICE=N, as validation=3, not 'validation'");
  told("validtion=3", "there is no service 'validtion'");
  told("validation=33", "from 0 to 32, not 'validation=33'");
}

}  // namespace
}  // namespace baton::test
