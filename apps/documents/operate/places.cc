#include "apps/documents/operate/places.h"

#include <filesystem>

#include "apps/documents/services.h"

namespace baton::documents {
namespace {

// postgres://user@host/NAME?options with another NAME.
std::string with_name(const std::string& url, const std::string& name) {
  const auto query = url.find('?');
  std::string base = url.substr(0, query);
  const auto host = base.find("://") + 3;
  if (const auto slash = base.find('/', host); slash != std::string::npos) base.resize(slash);
  return base + "/" + name + (query == std::string::npos ? "" : url.substr(query));
}

Result<void> create_database(sql::Connection& server, const std::string& name) {
  auto found = server.query("SELECT 1 FROM pg_database WHERE datname = $1", {name});
  if (!found) return found.error();
  if (!found->empty()) return {};
  auto quoted = server.query("SELECT quote_ident($1)", {name});
  if (!quoted) return quoted.error();
  auto made = server.query("CREATE DATABASE " + quoted->front().text(0) +
                           " TEMPLATE template0 ENCODING 'UTF8'");
  if (!made && server.sqlstate() != "42P04") return made.error();  // made by another meanwhile
  return {};
}

}  // namespace

std::string Places::database(std::string_view service) const {
  const std::string name(service);
  if (!postgres.empty()) return with_name(postgres, prefix + name);
  return "sqlite:" + directory + "/" + name + ".db";
}

std::string Places::broker() const {
  return rabbitmq.empty() ? "embedded:" + directory + "/broker.db" : rabbitmq;
}

std::string Places::log_file(std::string_view instance) const {
  return directory + "/logs/" + std::string(instance) + ".log";
}

std::string Places::run_file(std::string_view instance) const {
  return directory + "/run/" + std::string(instance);
}

Result<std::unique_ptr<sql::Connection>> Places::look_into(std::string_view service) const {
  std::error_code problem;
  if (postgres.empty() && !std::filesystem::exists(directory, problem)) {
    return Error{.code = Code::bad_store,
                 .message = "there is no directory " + directory +
                            "; 'documents up' makes it, or name another one with --directory"};
  }
  const std::string file = directory + "/" + std::string(service) + ".db";
  if (postgres.empty() && !std::filesystem::exists(file, problem)) {
    return Error{.code = Code::bad_store,
                 .message = "there is no file " + file +
                            "; 'documents up' makes it, or name another directory with "
                            "--directory, or the server of the databases with --postgres"};
  }
  return sql::Connection::open(
      database(service),
      {.name = std::string(service), .application = "documents", .read_only = true});
}

Result<void> prepare(const Places& places) {
  std::error_code problem;
  for (const char* folder : {"/logs", "/run", "/spool"}) {
    std::filesystem::create_directories(places.directory + folder, problem);
    if (problem) {
      return Error{.code = Code::bad_request,
                   .message = "cannot make " + places.directory + folder + ": " +
                              problem.message() + "; name another directory with --directory"};
    }
  }
  if (places.postgres.empty()) return {};
  auto server = sql::Connection::open(places.postgres, {.application = "documents"});
  if (!server) {
    Error error = server.error();
    error.message += "; without --postgres there is an SQLite file for each service";
    return error;
  }
  for (const KnownService& service : all_services()) {
    if (auto made = create_database(**server, places.prefix + std::string(service.name)); !made) {
      return made;
    }
  }
  return {};
}

}  // namespace baton::documents
