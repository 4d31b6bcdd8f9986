// deploy/compose.yaml and the Containerfile. Neither is run here: they are compared with themselves
// and with the programs.

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "deploy/shared_platform.h"

namespace baton::test {
namespace {

using nlohmann::json;

json compose() { return deploy_yaml("compose.yaml").at(0); }

// With a value for each ${NAME:?…}.
std::string filled(const std::string& text) {
  static const std::regex variable(R"(\$\{([A-Z_]+):\?[^}]*\})");
  return std::regex_replace(text, variable, "secret-$1");
}

// The variables that a text asks for, each of them without a default.
std::set<std::string> asked(const std::string& text) {
  std::set<std::string> names;
  const std::regex variable(R"(\$\{([A-Za-z_]+)(:\?)?)");
  for (std::sregex_iterator it(text.begin(), text.end(), variable), end; it != end; ++it) {
    EXPECT_TRUE((*it)[2].matched) << (*it)[1] << " may be empty";
    names.insert((*it)[1]);
  }
  return names;
}

TEST(Compose, has_the_services_a_database_for_each_the_broker_and_the_logs) {
  const json all = compose()["services"];
  std::set<std::string> expected = {"rabbitmq", "filebeat", "elasticsearch", "elasticsearch-setup",
                                    "kibana"};
  for (const auto& [service, port] : document_services()) {
    expected.insert(service);
    expected.insert(service + "-db");
  }
  std::set<std::string> found;
  for (const auto& [name, one] : all.items()) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(Compose, refers_to_nothing_that_is_not_there) {
  const json file = compose();
  for (const auto& [name, one] : file["services"].items()) {
    EXPECT_NE(one.value("image", "").find(':'), std::string::npos) << name << ": pin its version";
    for (const json& network : one["networks"]) {
      EXPECT_TRUE(file["networks"].contains(network.get<std::string>())) << name << ": " << network;
    }
    const json needed = one.value("depends_on", json::object());
    for (const auto& [other, how] : needed.items()) {
      ASSERT_TRUE(file["services"].contains(other)) << name << ": " << other;
      if (how["condition"] == "service_healthy") {
        EXPECT_TRUE(file["services"][other].contains("healthcheck")) << other;
      }
    }
    for (const json& volume : one.value("volumes", json::array())) {
      const auto text = volume.get<std::string>();
      const std::string source = text.substr(0, text.find(':'));
      if (source.starts_with("./")) {
        EXPECT_TRUE(std::filesystem::exists(std::string(BATON_DEPLOY) + source.substr(1)))
            << source;
      } else if (!source.starts_with("/")) {
        EXPECT_TRUE(file["volumes"].contains(source)) << name << ": " << source;
      }
    }
  }
  for (const auto& [service, port] : document_services()) {
    const json build = file["services"][service]["build"];
    EXPECT_EQ(build["context"], "..");
    EXPECT_TRUE(std::filesystem::exists(std::string(BATON_DEPLOY "/../") +
                                        build["dockerfile"].get<std::string>()));
  }
}

TEST(Compose, the_program_understands_what_each_service_is_started_with) {
  const json all = compose()["services"];
  for (const auto& [service, port] : document_services()) {
    const json one = all[service];
    ServiceStart start{.arguments = one["command"].get<std::vector<std::string>>()};
    for (const auto& [name, value] : one["environment"].items()) {
      start.environment[name] = filled(value);
    }
    const auto settings = settings_of(start);
    EXPECT_EQ(settings.service, service);
    EXPECT_EQ(settings.listen, "0.0.0.0:" + std::to_string(port));
    const std::string at = std::to_string(port);
    for (const json& published : one.value("ports", json::array())) {
      EXPECT_EQ(published, "127.0.0.1:" + at + ":" + at);
    }
    const json database = all[service + "-db"]["environment"];
    EXPECT_EQ(settings.database, "postgres://" + database["POSTGRES_USER"].get<std::string>() +
                                     ":" + filled(database["POSTGRES_PASSWORD"]) + "@" + service +
                                     "-db/" + database["POSTGRES_DB"].get<std::string>());
    const json broker = all["rabbitmq"]["environment"];
    EXPECT_EQ(settings.broker, "rabbitmq://" + broker["RABBITMQ_DEFAULT_USER"].get<std::string>() +
                                   ":" + filled(broker["RABBITMQ_DEFAULT_PASS"]) + "@rabbitmq/" +
                                   broker["RABBITMQ_DEFAULT_VHOST"].get<std::string>());
    EXPECT_NE(one["healthcheck"]["test"].dump().find("/dev/tcp/127.0.0.1/" + at),
              std::string::npos);
    if (service == "notification") {
      EXPECT_EQ(one["volumes"][0], "spool:" + settings.spool);
    }
    EXPECT_EQ(one["read_only"], true);
    EXPECT_EQ(one["cap_drop"], json::array({"ALL"}));
    EXPECT_EQ(std::stoi(one["stop_grace_period"].get<std::string>()) > 20, true);
  }
}

TEST(Compose, no_two_services_share_a_database_or_a_password) {
  const json all = compose()["services"];
  std::set<std::string> databases;
  std::set<std::string> passwords;
  for (const auto& [service, port] : document_services()) {
    databases.insert(all[service]["environment"]["DOCUMENTS_DATABASE"].get<std::string>());
    passwords.insert(all[service + "-db"]["environment"]["POSTGRES_PASSWORD"].get<std::string>());
  }
  EXPECT_EQ(databases.size(), document_services().size());
  EXPECT_EQ(passwords.size(), document_services().size());
}

TEST(Compose, asks_for_every_password_and_contains_none) {
  std::set<std::string> offered;
  std::istringstream lines(deploy_text("compose.env.example"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    EXPECT_TRUE(line.ends_with('=')) << line;
    offered.insert(line.substr(0, line.find('=')));
  }
  EXPECT_EQ(asked(deploy_text("compose.yaml")), offered);
  const json all = compose()["services"];
  for (const auto& [name, one] : all.items()) {
    const json environment = one.value("environment", json::object());
    for (const auto& [variable, value] : environment.items()) {
      if (variable.find("PASS") == std::string::npos) continue;
      EXPECT_TRUE(value.get<std::string>().starts_with("${")) << name << ": " << variable;
    }
  }
}

TEST(Compose, nothing_is_published_to_other_machines) {
  const json all = compose()["services"];
  for (const auto& [name, one] : all.items()) {
    for (const json& port : one.value("ports", json::array())) {
      EXPECT_TRUE(port.get<std::string>().starts_with("127.0.0.1:")) << name;
    }
  }
}

TEST(Compose, says_that_it_was_checked_and_not_run) {
  EXPECT_NE(deploy_text("compose.yaml").find("It was not run"), std::string::npos);
}

TEST(Compose, the_health_check_of_a_service_tells_ready_from_not) {
  const json check = compose()["services"]["audit"]["healthcheck"]["test"];
  ASSERT_EQ(check.at(0), "CMD");
  const auto judged = [&](int port, const std::string& path = "/readyz") {
    std::vector<std::string> argv;
    for (std::size_t i = 1; i < check.size(); ++i) {
      auto word = check[i].get<std::string>();
      word = std::regex_replace(word, std::regex("127\\.0\\.0\\.1/[0-9]+"),
                                "127.0.0.1/" + std::to_string(port));
      word = std::regex_replace(word, std::regex("GET /readyz"), "GET " + path);
      argv.push_back(std::regex_replace(word, std::regex("\\$\\$"), "$$"));
    }
    return run({.argv = argv}).status.success();
  };
  const int port = shared_platform().port("audit-1");
  EXPECT_TRUE(poll_until([&] { return judged(port); }));
  EXPECT_FALSE(judged(port, "/nothing"));  // an answer, but another one than 200
  EXPECT_FALSE(judged(1));                 // nobody listens there
}

// What a program needs is in a package that the image has, or that every image of Debian has.
TEST(Containerfile, has_the_libraries_that_the_programs_need) {
  const std::string text = deploy_text("Containerfile");
  std::string image = text.substr(text.rfind("\nFROM "));
  image = " " + std::regex_replace(image, std::regex("\\s+"), " ") + " libc6 libgcc-s1 ";
  std::set<std::string> libraries;
  for (const std::string program : {BATON_DOCUMENTS, BATON_PROGRAM}) {
    const auto read = run({.argv = {"readelf", "-d", program}});
    ASSERT_TRUE(read.status.success()) << read.err;
    const std::regex needed(R"(\(NEEDED\).*\[([^\]]+)\])");
    for (std::sregex_iterator it(read.out.begin(), read.out.end(), needed), end; it != end; ++it) {
      libraries.insert((*it)[1]);
    }
  }
  EXPECT_GT(libraries.size(), 8U);
  std::vector<std::string> argv = {"dpkg-query", "-S"};
  for (const std::string& library : libraries) argv.push_back("*/" + library);
  const auto found = run({.argv = argv});
  ASSERT_TRUE(found.status.success()) << found.err;
  std::istringstream lines(found.out);  // libpq5:amd64: /usr/lib/x86_64-linux-gnu/libpq.so.5
  for (std::string line; std::getline(lines, line);) {
    const std::string package = line.substr(0, line.find(':'));
    if (image.find(" " + package + " ") != std::string::npos) {
      libraries.erase(line.substr(line.rfind('/') + 1));
    }
  }
  for (const std::string& library : libraries) ADD_FAILURE() << library << " is in no package";
}

TEST(Containerfile, runs_as_nobody_in_particular) {
  const std::string text = deploy_text("Containerfile");
  EXPECT_NE(text.find("\nUSER 10001:10001\n"), std::string::npos);
  EXPECT_NE(text.find("\nENTRYPOINT [\"/usr/bin/documents\"]\n"), std::string::npos);
}

}  // namespace
}  // namespace baton::test
