#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

struct amqp_connection_state_t_;

namespace baton::test {

// Somebody else's program on RabbitMQ, with plain librabbitmq. Every failure is an exception.
class ForeignClient {
 public:
  explicit ForeignClient(int port);
  ~ForeignClient();
  ForeignClient(const ForeignClient&) = delete;
  ForeignClient& operator=(const ForeignClient&) = delete;

  using Arguments = std::map<std::string, std::variant<int, std::string>>;
  void declare_queue(const std::string& name, const Arguments& arguments);
  void delete_queue(const std::string& name);
  void delete_exchange(const std::string& name);
  // Without an id and a content type, not persistent.
  void publish(const std::string& queue, const std::string& body, const Arguments& headers);

 private:
  void expect_ok(const char* what);

  amqp_connection_state_t_* state_;
};

}  // namespace baton::test
