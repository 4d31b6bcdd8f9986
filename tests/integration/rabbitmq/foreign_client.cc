#include "integration/rabbitmq/foreign_client.h"

#include <stdexcept>
#include <vector>

#include <amqp.h>
#include <amqp_tcp_socket.h>

namespace baton::test {
namespace {

constexpr amqp_channel_t kChannel = 1;

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}

std::vector<amqp_table_entry_t> entries_of(const ForeignClient::Arguments& arguments) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : arguments) {
    amqp_table_entry_t& entry = entries.emplace_back();
    entry.key = bytes_of(name);
    if (const int* number = std::get_if<int>(&value)) {
      entry.value.kind = AMQP_FIELD_KIND_I32;
      entry.value.value.i32 = *number;
    } else {
      entry.value.kind = AMQP_FIELD_KIND_UTF8;
      entry.value.value.bytes = bytes_of(std::get<std::string>(value));
    }
  }
  return entries;
}

}  // namespace

ForeignClient::ForeignClient(int port) : state_(amqp_new_connection()) {
  amqp_socket_t* const socket = amqp_tcp_socket_new(state_);
  if (socket == nullptr || amqp_socket_open(socket, "127.0.0.1", port) != AMQP_STATUS_OK) {
    throw std::runtime_error("no connection");
  }
  amqp_login(state_, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  amqp_channel_open(state_, kChannel);
  expect_ok("open");
}

ForeignClient::~ForeignClient() {
  amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state_);
}

void ForeignClient::expect_ok(const char* what) {
  if (amqp_get_rpc_reply(state_).reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(what);
}

void ForeignClient::declare_queue(const std::string& name, const Arguments& arguments) {
  auto entries = entries_of(arguments);
  amqp_queue_declare(state_, kChannel, bytes_of(name), 0, 1, 0, 0,
                     {static_cast<int>(entries.size()), entries.data()});
  expect_ok("declare");
}

void ForeignClient::delete_queue(const std::string& name) {
  amqp_queue_delete(state_, kChannel, bytes_of(name), 0, 0);
  expect_ok("delete");
}

void ForeignClient::delete_exchange(const std::string& name) {
  amqp_exchange_delete(state_, kChannel, bytes_of(name), 0);
  expect_ok("delete");
}

void ForeignClient::publish(const std::string& queue, const std::string& body,
                            const Arguments& headers) {
  auto entries = entries_of(headers);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {static_cast<int>(entries.size()), entries.data()};
  if (amqp_basic_publish(state_, kChannel, amqp_empty_bytes, bytes_of(queue), 0, 0, &properties,
                         bytes_of(body)) != AMQP_STATUS_OK) {
    throw std::runtime_error("publish");
  }
}

}  // namespace baton::test
