// One connection, as a chain of asynchronous steps on its own strand:
//
//   wait ──► header ──► body ──► handler ──► write ──► wait …
//     │         └─────────┴──────────┴─────────►│
//     └──► close                                └──► linger ──► close
//
// One timer guards whatever step it is in.

#include "http/connection.h"

#include <algorithm>
#include <optional>

#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "http/refusals.h"

namespace baton::http {

namespace net = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

namespace {

constexpr Millis kLingerTime{2000};
constexpr std::size_t kLingerBytes = 16U << 20U;
constexpr std::size_t kReadChunk = 64U << 10U;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string lower(beast::string_view text) {
  std::string out(text.data(), text.size());
  std::transform(out.begin(), out.end(), out.begin(), [](char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
  });
  return out;
}

// A line break in a value would end the header and start another one.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char character) { return static_cast<unsigned char>(character) < 0x20; }, ' ');
  return text;
}

Response explain(const Refusal& refusal, const error_code& problem) {
  if (problem == beast::http::error::header_limit) {
    return refusal(431, "header_too_large", "the header is too large");
  }
  if (problem == beast::http::error::body_limit) {
    return refusal(413, "body_too_large", "the body is too large");
  }
  return refusal(400, "bad_request", "this is no HTTP request: " + problem.message());
}

std::string describe(const Socket& socket) {
  error_code problem;
  const auto peer = socket.remote_endpoint(problem);
  if (problem) return "?";
  const std::string address = peer.address().to_string();
  return (peer.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(peer.port());
}

// Counted while it exists.
class Pending {
 public:
  explicit Pending(std::shared_ptr<std::atomic<std::size_t>> number) : number_(std::move(number)) {
    ++*number_;
  }
  ~Pending() { --*number_; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

 private:
  const std::shared_ptr<std::atomic<std::size_t>> number_;
};

class HttpConnection final : public Connection,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Socket socket, Connections& all)
      : all_(all),
        options_(all.options),
        peer_(describe(socket)),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        buffer_(options_.max_header_bytes + kReadChunk) {}
  ~HttpConnection() override { all_.leave(this); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void serve() {
    run([](HttpConnection& self) { self.wait_for_request(); });
  }
  void serve_only_at_once() {
    run([](HttpConnection& self) {
      self.only_at_once_ = true;
      self.wait_for_request();
    });
  }
  void drain() override {
    run([](HttpConnection& self) {
      if (self.step_ == Step::wait) self.close();
    });
  }
  void make_room() override {
    run([](HttpConnection& self) {
      error_code problem;
      if (self.step_ == Step::wait && self.socket_.available(problem) == 0) self.close();
    });
  }
  void abort() override {
    run([](HttpConnection& self) { self.close(); });
  }

 private:
  enum class Step { wait, header, body, handler, write, linger, closed };
  using Parser = beast::http::request_parser<beast::http::string_body>;
  using Message = beast::http::response<beast::http::string_body>;
  using Serializer = beast::http::response_serializer<beast::http::string_body>;

  template <typename Call>
  void run(Call call) {
    net::post(socket_.get_executor(), [self = shared_from_this(), call] { call(*self); });
  }

  // The continuation of a step, unless the connection was closed meanwhile.
  template <typename Next>
  auto then(Next next) {
    return [self = shared_from_this(), next](const error_code& problem, std::size_t = 0) {
      if (self->step_ != Step::closed) next(*self, problem);
    };
  }

  void enter(Step step, Millis limit) {
    step_ = step;
    timer_.expires_after(limit);
    timer_.async_wait([self = shared_from_this(), round = ++round_](const error_code& problem) {
      if (!problem && round == self->round_) self->expired();
    });
  }

  void expired() {
    switch (step_) {
      case Step::header:
      case Step::body:
        timed_out_ = true;
        socket_.cancel();  // the read that is under way answers
        return;
      case Step::handler: return fail(too_busy(options_.refusal, "the request took too long"));
      default: return close();
    }
  }

  void close() {
    step_ = Step::closed;
    ++round_;
    timer_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  void wait_for_request() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options_.max_header_bytes));
    parser_->body_limit(options_.max_body_bytes);
    timed_out_ = false;
    head_ = false;
    keep_alive_ = false;
    served_ = {.peer = peer_};
    started_ = std::chrono::steady_clock::now();
    if (buffer_.size() > 0) return read_header();
    if (all_.stopping) return close();
    buffer_.shrink_to_fit();
    enter(Step::wait, count_ == 0 ? options_.header_timeout : options_.idle_timeout);
    all_.idle(this, count_ > 0);
    socket_.async_wait(Socket::wait_read, then([](HttpConnection& self, const error_code& problem) {
                         if (problem) return self.close();
                         self.all_.busy(&self);
                         self.read_header();
                       }));
  }

  void read_header() {
    enter(Step::header, options_.header_timeout);
    beast::http::async_read_header(socket_, buffer_, *parser_,
                                   then([](HttpConnection& self, const error_code& problem) {
                                     if (problem) return self.cannot_read(problem);
                                     self.check_header();
                                   }));
  }

  void check_header() {
    const auto& header = parser_->get();
    if (header.version() >= 11 && header.count(beast::http::field::host) != 1) {
      return fail(options_.refusal(400, "bad_request", "exactly one Host header is needed"));
    }
    if (!has_one_length()) {
      return fail(options_.refusal(400, "bad_request",
                                   "a body has one Content-Length or Transfer-Encoding: chunked"));
    }
    if (only_at_once_ && !is_answered_at_once()) {
      return fail(too_busy(options_.refusal, "too many connections; try again"));
    }
    const std::string expect = lower(header[beast::http::field::expect]);
    if (expect.empty() || header.version() < 11 || parser_->is_done()) return read_body();
    if (expect != "100-continue") {
      return fail(options_.refusal(417, "expectation_failed", "only 100-continue can be expected"));
    }
    enter(Step::write, options_.write_timeout);
    net::async_write(socket_, net::buffer(kContinue),
                     then([](HttpConnection& self, const error_code& problem) {
                       if (problem) return self.close();
                       self.read_body();
                     }));
  }

  // Where a proxy in front of us and we could differ on where a request ends, the rest of it would
  // be taken for another request.
  [[nodiscard]] bool has_one_length() const {
    const auto& header = parser_->get();
    const auto lengths = header.count(beast::http::field::content_length);
    const auto encodings = header.count(beast::http::field::transfer_encoding);
    if (encodings == 0) {
      // The parser takes a list of equal lengths, "5, 5".
      const auto length = header[beast::http::field::content_length];
      return lengths <= 1 && length.find_first_not_of("0123456789") == length.npos;
    }
    return encodings == 1 && lengths == 0 && header.version() >= 11 &&
           lower(header[beast::http::field::transfer_encoding]) == "chunked";
  }

  [[nodiscard]] bool is_answered_at_once() const {
    const auto& header = parser_->get();
    const auto target = parse_target({header.target().data(), header.target().size()});
    if (!target) return false;
    const auto match = all_.router->find(std::string(header.method_string()), *target);
    return match.handler != nullptr && match.run == Router::Run::at_once;
  }

  void read_body() {
    if (parser_->is_done()) return dispatch();
    enter(Step::body, options_.body_timeout);
    beast::http::async_read(socket_, buffer_, *parser_,
                            then([](HttpConnection& self, const error_code& problem) {
                              if (problem) return self.cannot_read(problem);
                              self.dispatch();
                            }));
  }

  void cannot_read(const error_code& problem) {
    if (timed_out_) return fail(options_.refusal(408, "timeout", "the request came too slowly"));
    if (problem == beast::http::error::end_of_stream) return close();
    if (problem == beast::http::error::partial_message ||
        problem.category() == make_error_code(beast::http::error::bad_version).category()) {
      return fail(explain(options_.refusal, problem));
    }
    close();  // the network, not the client
  }

  void dispatch() {
    auto message = parser_->release();
    ++count_;
    started_ = std::chrono::steady_clock::now();
    keep_alive_ =
        message.keep_alive() && !only_at_once_ && count_ < options_.max_requests_per_connection;
    head_ = message.method() == beast::http::verb::head;
    served_.method = std::string(message.method_string());
    // Before the routing, so that its refusals are answers as well.
    enter(Step::handler, options_.answer_timeout);

    auto target = parse_target({message.target().data(), message.target().size()});
    if (!target) return answer(options_.refusal(400, "bad_request", "the path cannot be read"));
    auto match = all_.router->find(served_.method, *target);
    if (match.handler == nullptr) return answer(no_route(options_.refusal, match));
    served_.route = match.route;

    Request request{.method = head_ ? "GET" : served_.method,
                    .path = std::move(target->path),
                    .route = std::move(match.route),
                    .parameters = std::move(match.parameters),
                    .query = std::move(target->query),
                    .body = std::move(message.body()),
                    .peer = peer_};
    for (const auto& field : message) {
      request.headers.emplace_back(lower(field.name_string()), std::string(field.value()));
    }
    if (request.method != "GET" && is_cross_origin(request, all_.on_loopback)) {
      return answer(options_.refusal(403, "forbidden", "a page of another origin may not do this"));
    }
    if (options_.refuse) {
      if (const auto refusal = options_.refuse(request)) return answer(*refusal);
    }
    start_handler(match, std::move(request));
  }

  void start_handler(const Router::Match& match, Request request) {
    const bool on_worker = match.run == Router::Run::on_worker;
    if (on_worker && *all_.pending >= options_.max_pending)
      return answer(too_many_pending(options_.refusal));
    Reply reply(sender(on_worker ? std::make_unique<Pending>(all_.pending) : nullptr),
                options_.refusal);
    if (match.run == Router::Run::at_once) {
      try {
        (*match.handler)(std::move(request), std::move(reply));
      } catch (const std::exception&) {
        // The reply is dropped, and says so.
      }
      return;
    }
    // The workers may outlive this server, so the job keeps the router that the handler is in.
    auto job = [router = all_.router, handler = match.handler, request = std::move(request),
                reply]() mutable { (*handler)(std::move(request), std::move(reply)); };
    if (!all_.workers->offer(std::move(job)))
      reply(too_busy(options_.refusal, "too many requests wait; try again"));
  }

  // Keeps nothing alive: neither this connection nor the server.
  Reply::Send sender(std::shared_ptr<Pending> pending) {
    return [open_flag = all_.open_flag, weak = weak_from_this(), count = count_,
            pending = std::move(pending)](Response response) mutable {
      pending.reset();
      const std::shared_lock lock(open_flag->mutex);
      if (!open_flag->open) return;
      const auto self = weak.lock();
      if (!self) return;
      self->run([count, response = std::move(response)](HttpConnection& connection) {
        if (connection.step_ != Step::handler || connection.count_ != count) return;
        connection.answer(response);
      });
    };
  }

  // Says what is wrong and ends the connection: what else it holds cannot be trusted.
  void fail(const Response& response) {
    keep_alive_ = false;
    answer(response);
  }

  void answer(const Response& response) {
    if (all_.stopping) keep_alive_ = false;
    message_.emplace();
    message_->result(static_cast<unsigned>(response.status));
    message_->set(beast::http::field::content_type, one_line(response.content_type));
    message_->set(beast::http::field::cache_control, "no-store");
    message_->set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) message_->set(name, one_line(value));
    message_->keep_alive(keep_alive_);
    if (response.status != 204 && response.status != 304) message_->body() = response.body;
    message_->prepare_payload();
    served_.status = response.status;
    served_.took = std::chrono::steady_clock::now() - started_;
    if (options_.on_served) options_.on_served(served_);

    serializer_.emplace(*message_);
    enter(Step::write, options_.write_timeout);
    auto written = then([](HttpConnection& self, const error_code& problem) {
      if (problem && problem != beast::http::error::end_of_stream) return self.close();
      if (self.keep_alive_) return self.wait_for_request();
      self.linger();
    });
    if (head_) {
      beast::http::async_write_header(socket_, *serializer_, std::move(written));
    } else {
      beast::http::async_write(socket_, *serializer_, std::move(written));
    }
  }

  // Closing a socket with unread data makes the kernel reset the connection, and the client may
  // lose the answer. So what it still sends is read and thrown away for a while.
  void linger() {
    error_code problem;
    socket_.shutdown(Socket::shutdown_send, problem);
    if (problem) return close();
    buffer_.clear();
    enter(Step::linger, kLingerTime);
    throw_away(kLingerBytes);
  }

  void throw_away(std::size_t left) {
    auto next = [self = shared_from_this(), left](const error_code& problem, std::size_t got) {
      if (self->step_ == Step::closed) return;
      if (problem || got >= left) return self->close();
      self->throw_away(left - got);
    };
    socket_.async_read_some(buffer_.prepare(kReadChunk), std::move(next));
  }

  Connections& all_;
  const ServerOptions& options_;
  const std::string peer_;
  Socket socket_;
  net::steady_timer timer_;
  std::uint64_t round_ = 0;
  Step step_ = Step::wait;
  bool only_at_once_ = false;
  bool timed_out_ = false;
  bool keep_alive_ = false;
  bool head_ = false;
  std::size_t count_ = 0;  // requests read
  std::chrono::steady_clock::time_point started_;
  Served served_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Message> message_;
  std::optional<Serializer> serializer_;
};

}  // namespace

void accept_connection(Socket socket, Connections& all) {
  error_code ignored;
  socket.set_option(net::ip::tcp::no_delay(true), ignored);
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), all);
  switch (all.join(connection)) {
    case Connections::Admission::serve: return connection->serve();
    case Connections::Admission::only_at_once: return connection->serve_only_at_once();
    case Connections::Admission::turn_away: return;
  }
}

}  // namespace baton::http
