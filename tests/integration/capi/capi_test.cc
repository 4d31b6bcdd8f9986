// libbaton.so.0 by its C interface: what Python and the example do not reach.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "baton/baton.h"

namespace baton::test {
namespace {

constexpr std::int64_t kPatience = 30'000;

bool readable(int fd, int timeout = 0) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&one, 1, timeout) == 1;
}

// Any call that gives a text.
template <typename Call>
std::string text(Call&& call) {
  std::string found(call(nullptr, 0), '\0');
  call(found.data(), found.size() + 1);
  return found;
}

class CApi : public ::testing::Test {
 protected:
  CApi() {
    EXPECT_EQ(baton_open("memory:", nullptr, &client_, &error_), BATON_OK) << error_.message;
  }
  ~CApi() override { baton_close(client_, nullptr); }

  baton_lease* hold(const char* name, std::int64_t wait_ms = 0) {
    baton_acquire_options options = BATON_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = wait_ms;
    baton_lease* lease = nullptr;
    baton_acquire(client_, name, &options, &lease, &error_);
    return lease;
  }
  baton_request* ask(const char* name) {
    baton_acquire_options options = BATON_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = BATON_WAIT_LONGEST;
    baton_request* request = nullptr;
    EXPECT_EQ(baton_acquire_async(client_, &name, 1, &options, &request, &error_), BATON_OK)
        << error_.message;
    return request;
  }

  baton_client* client_ = nullptr;
  baton_error error_ = BATON_ERROR_INIT;
};

TEST_F(CApi, a_lock_is_held_by_one_and_freed_for_the_next) {
  baton_lease* lease = hold("report");
  ASSERT_NE(lease, nullptr) << error_.message;
  EXPECT_EQ(error_.code, BATON_OK);
  EXPECT_EQ(baton_lease_valid(lease), 1);
  EXPECT_EQ(hold("report"), nullptr);
  EXPECT_EQ(error_.code, BATON_BUSY);
  EXPECT_STREQ(baton_code_name(error_.code), "busy");
  const auto token = baton_lease_token(lease);
  EXPECT_EQ(baton_lease_free(lease, nullptr), BATON_OK);
  baton_lease* next = hold("report");
  ASSERT_NE(next, nullptr);
  EXPECT_GT(baton_lease_token(next), token);
  EXPECT_EQ(baton_lease_release(next, nullptr, &error_), BATON_OK);
  EXPECT_EQ(baton_lease_release(next, nullptr, &error_), BATON_LOST);
  EXPECT_EQ(baton_lease_valid(next), 0);
  baton_lease_free(next, nullptr);
}

TEST_F(CApi, a_lease_shows_all_its_tokens) {
  const char* names[] = {"a", "b/1"};
  baton_lease* lease = nullptr;
  ASSERT_EQ(baton_acquire_all(client_, names, 2, nullptr, &lease, &error_), BATON_OK);
  std::uint64_t number = 0;
  std::int32_t mode = -1;
  char key[64];
  EXPECT_EQ(baton_lease_token_at(lease, 1, &number, &mode, key, sizeof(key)), 11U);
  EXPECT_STREQ(key, "DEFAULT:b:1");
  EXPECT_EQ(mode, BATON_X);
  const auto first = std::to_string(baton_lease_token(lease));
  EXPECT_EQ(text([&](char* to, size_t size) { return baton_lease_fence_text(lease, to, size); }),
            R"([{"name":"DEFAULT:a","mode":"X","token":")" + first +
                R"("},{"name":"DEFAULT:b:1","mode":"X","token":")" + std::to_string(number) +
                R"("}])");
  EXPECT_EQ(baton_lease_token_at(lease, 2, &number, &mode, key, sizeof(key)), 0U);
  baton_lease_free(lease, nullptr);
}

TEST_F(CApi, a_text_is_cut_where_the_buffer_ends_but_not_inside_a_character) {
  baton_lease* lease = hold("löck");
  ASSERT_NE(lease, nullptr);
  char buffer[11];
  std::memset(buffer, 'x', sizeof(buffer));
  EXPECT_EQ(baton_lease_key(lease, buffer, sizeof(buffer)), std::strlen("DEFAULT:löck"));
  EXPECT_STREQ(buffer, "DEFAULT:l");
  baton_lease_free(lease, nullptr);
}

TEST_F(CApi, the_descriptor_is_readable_once_the_lease_has_ended) {
  baton_lease* lease = hold("report");
  int fd = -1;
  ASSERT_EQ(baton_lease_fd(lease, &fd, &error_), BATON_OK);
  int same = -1;
  ASSERT_EQ(baton_lease_fd(lease, &same, &error_), BATON_OK);
  EXPECT_EQ(fd, same);
  EXPECT_FALSE(readable(fd));
  baton_lease_release(lease, nullptr, nullptr);
  EXPECT_TRUE(readable(fd));
  EXPECT_TRUE(readable(fd));
  baton_lease_free(lease, nullptr);

  baton_lease* late = hold("report");
  baton_lease_release(late, nullptr, nullptr);
  ASSERT_EQ(baton_lease_fd(late, &fd, &error_), BATON_OK);
  EXPECT_TRUE(readable(fd));
  baton_lease_free(late, nullptr);
}

TEST_F(CApi, an_acquire_can_be_waited_for_by_its_descriptor) {
  baton_lease* lease = hold("report");
  baton_request* request = ask("report");
  int fd = -1;
  ASSERT_EQ(baton_request_fd(request, &fd, &error_), BATON_OK);
  baton_lease* next = nullptr;
  EXPECT_EQ(baton_request_take(request, 0, &next, &error_), BATON_PENDING);
  EXPECT_EQ(next, nullptr);
  EXPECT_FALSE(readable(fd));
  baton_lease_free(lease, nullptr);
  ASSERT_TRUE(readable(fd, kPatience));
  ASSERT_EQ(baton_request_take(request, 0, &next, &error_), BATON_OK);
  EXPECT_EQ(baton_lease_valid(next), 1);
  baton_lease* twice = nullptr;
  EXPECT_EQ(baton_request_take(request, 0, &twice, &error_), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_request_free(request, &error_), BATON_OK);
  EXPECT_EQ(baton_lease_valid(next), 1);
  baton_lease_free(next, nullptr);
}

TEST_F(CApi, a_wait_can_be_cancelled_from_another_thread) {
  baton_lease* lease = hold("report");
  baton_request* request = ask("report");
  std::thread other([&] { baton_request_cancel(request, nullptr); });
  baton_lease* next = nullptr;
  EXPECT_EQ(baton_request_take(request, kPatience, &next, &error_), BATON_CANCELLED);
  other.join();
  baton_request_free(request, nullptr);
  baton_lease_free(lease, nullptr);
}

TEST_F(CApi, a_lease_that_nobody_took_is_released) {
  baton_request* request = ask("report");
  int fd = -1;
  baton_request_fd(request, &fd, nullptr);
  ASSERT_TRUE(readable(fd, kPatience));
  EXPECT_EQ(hold("report"), nullptr);
  baton_request_free(request, nullptr);
  baton_lease* next = hold("report", kPatience);
  EXPECT_NE(next, nullptr) << error_.message;
  baton_lease_free(next, nullptr);
}

TEST_F(CApi, a_request_outlives_the_handle_of_its_client) {
  baton_request* request = ask("report");
  EXPECT_EQ(baton_close(client_, nullptr), BATON_OK);
  baton_lease* lease = nullptr;
  EXPECT_EQ(baton_request_take(request, kPatience, &lease, &error_), BATON_OK);
  baton_request_free(request, nullptr);
  EXPECT_EQ(baton_lease_valid(lease), 1);
  baton_lease_free(lease, nullptr);
}

TEST_F(CApi, handles_that_are_none_are_refused_by_every_call) {
  baton_lease* lease = hold("report");
  baton_lease_free(lease, nullptr);
  int local = 0;
  const std::vector<void*> wrong = {nullptr,
                                    lease,
                                    client_,
                                    &local,
                                    reinterpret_cast<void*>(std::uintptr_t{1}),
                                    reinterpret_cast<void*>(~std::uintptr_t{0})};
  for (void* one : wrong) {
    auto* no_lease = static_cast<baton_lease*>(one);
    int fd = 0;
    EXPECT_EQ(baton_lease_valid(no_lease), 0);
    EXPECT_EQ(baton_lease_remaining_ms(no_lease), 0);
    EXPECT_EQ(baton_lease_mode(no_lease), -1);
    EXPECT_EQ(baton_lease_ttl_ms(no_lease), 0);
    EXPECT_EQ(baton_lease_token(no_lease), 0U);
    EXPECT_EQ(baton_lease_fd(no_lease, &fd, &error_), BATON_BAD_REQUEST);
    for (auto* call :
         {baton_lease_why_lost, baton_lease_key, baton_lease_grant, baton_lease_fence_text}) {
      EXPECT_EQ(call(no_lease, nullptr, 0), 0U);
    }
    EXPECT_EQ(baton_lease_token_at(no_lease, 0, nullptr, nullptr, nullptr, 0), 0U);
    EXPECT_EQ(baton_lease_note(no_lease, nullptr, nullptr, 0), 0U);
    EXPECT_EQ(baton_lease_set_note(no_lease, nullptr, "x", 0, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_lease_convert(no_lease, BATON_S, 0, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_lease_release(no_lease, nullptr, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_lease_free(no_lease, &error_), BATON_BAD_REQUEST);
    EXPECT_STRNE(error_.message, "");

    auto* no_request = static_cast<baton_request*>(one);
    EXPECT_EQ(baton_request_fd(no_request, &fd, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_request_take(no_request, 0, &lease, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(lease, nullptr);
    EXPECT_EQ(baton_request_cancel(no_request, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_request_free(no_request, &error_), BATON_BAD_REQUEST);

    auto* no_elector = static_cast<baton_elector*>(one);
    EXPECT_EQ(baton_elector_fd(no_elector, &fd, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_elector_take(no_elector, 0, &lease, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_elector_trouble(no_elector, nullptr, 0), 0U);
    EXPECT_EQ(baton_elector_close(no_elector, &error_), BATON_BAD_REQUEST);

    if (one == client_) continue;
    auto* no_client = static_cast<baton_client*>(one);
    baton_elector* elector = nullptr;
    EXPECT_EQ(baton_owner(no_client, nullptr, 0), 0U);
    EXPECT_EQ(baton_try_acquire(no_client, "x", nullptr, &lease, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_elect(no_client, "x", nullptr, &elector, &error_), BATON_BAD_REQUEST);
    EXPECT_EQ(baton_close(no_client, &error_), BATON_BAD_REQUEST);
  }
}

TEST_F(CApi, null_arguments_are_refused) {
  baton_lease* lease = nullptr;
  const char* names[] = {"a", nullptr};
  baton_client* none = nullptr;
  EXPECT_EQ(baton_open(nullptr, nullptr, &none, &error_), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_open("memory:", nullptr, nullptr, &error_), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire(client_, nullptr, nullptr, &lease, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire(client_, "a", nullptr, nullptr, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire_all(client_, names, 2, nullptr, &lease, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire_all(client_, nullptr, 2, nullptr, &lease, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire_all(client_, names, 0, nullptr, &lease, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_acquire_async(client_, names, 1, nullptr, nullptr, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_elect(client_, nullptr, nullptr, nullptr, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_event_parameters(BATON_SQLITE, nullptr, nullptr, 0, nullptr, nullptr),
            BATON_BAD_REQUEST);
  EXPECT_EQ(baton_migrate(nullptr, 0, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_install_fence(nullptr, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_install_outbox(nullptr, nullptr), BATON_BAD_REQUEST);
  EXPECT_EQ(baton_fence_check_sql(7), nullptr);
}

// A program that was compiled with another version of the header.
TEST_F(CApi, options_of_another_size_are_taken_if_what_is_unknown_is_not_set) {
  struct Newer {
    baton_acquire_options known = BATON_ACQUIRE_OPTIONS_INIT;
    std::int64_t unknown = 0;
  } newer;
  newer.known.size = sizeof(newer);
  baton_lease* lease = nullptr;
  EXPECT_EQ(baton_acquire(client_, "a", &newer.known, &lease, &error_), BATON_OK);
  baton_lease_free(lease, nullptr);
  newer.unknown = 1;
  EXPECT_EQ(baton_acquire(client_, "a", &newer.known, &lease, &error_), BATON_UNSUPPORTED);
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, ~std::size_t{0}}) {
    newer.known.size = size;
    EXPECT_EQ(baton_acquire(client_, "a", &newer.known, &lease, &error_), BATON_BAD_REQUEST);
  }
  baton_error small = BATON_ERROR_INIT;
  small.size = 8;
  small.code = 77;
  EXPECT_EQ(baton_acquire(client_, nullptr, nullptr, &lease, &small), BATON_BAD_REQUEST);
  EXPECT_EQ(small.code, 77);
}

TEST_F(CApi, options_that_were_shorter_once_are_taken_and_what_lies_behind_them_is_not) {
  baton_elector_options options = BATON_ELECTOR_OPTIONS_INIT;
  options.preempt = 1;  // which needs a priority
  baton_elector* elector = nullptr;
  baton_lease* term = nullptr;
  EXPECT_EQ(baton_elect(client_, "a", &options, &elector, &error_), BATON_BAD_REQUEST);
  options.size = offsetof(baton_elector_options, priority);
  ASSERT_EQ(baton_elect(client_, "a", &options, &elector, &error_), BATON_OK);
  EXPECT_EQ(baton_elector_take(elector, kPatience, &term, &error_), BATON_OK) << error_.message;
  EXPECT_EQ(baton_lease_free(term, nullptr), BATON_OK);
  EXPECT_EQ(baton_elector_close(elector, &error_), BATON_OK);
  options.size -= 1;
  EXPECT_EQ(baton_elect(client_, "a", &options, &elector, &error_), BATON_BAD_REQUEST);
}

TEST_F(CApi, a_candidate_that_never_leads_leaves_the_election_to_others) {
  baton_elector_options options = BATON_ELECTOR_OPTIONS_INIT;
  options.never_lead = 1;
  baton_elector* observer = nullptr;
  ASSERT_EQ(baton_elect(client_, "outbox", &options, &observer, &error_), BATON_OK);
  baton_elector* elector = nullptr;
  ASSERT_EQ(baton_elect(client_, "outbox", nullptr, &elector, &error_), BATON_OK);
  baton_lease* term = nullptr;
  ASSERT_EQ(baton_elector_take(elector, kPatience, &term, &error_), BATON_OK);
  EXPECT_EQ(baton_lease_free(term, nullptr), BATON_OK);
  EXPECT_EQ(baton_elector_close(elector, nullptr), BATON_OK);
  EXPECT_EQ(baton_elector_take(observer, 0, &term, &error_), BATON_PENDING);
  EXPECT_EQ(baton_elector_close(observer, nullptr), BATON_OK);
}

TEST_F(CApi, a_term_is_a_lease_that_ends_when_its_work_has) {
  baton_elector* elector = nullptr;
  ASSERT_EQ(baton_elect(client_, "outbox", nullptr, &elector, &error_), BATON_OK);
  int fd = -1;
  ASSERT_EQ(baton_elector_fd(elector, &fd, &error_), BATON_OK);
  ASSERT_TRUE(readable(fd, kPatience));
  baton_lease* term = nullptr;
  ASSERT_EQ(baton_elector_take(elector, kPatience, &term, &error_), BATON_OK);
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(baton_lease_valid(term), 1);
  EXPECT_EQ(text([&](char* to, size_t size) { return baton_lease_key(term, to, size); }),
            "DEFAULT:leader:outbox");
  int ends = -1;
  ASSERT_EQ(baton_lease_fd(term, &ends, &error_), BATON_OK);
  EXPECT_FALSE(readable(ends));
  std::thread closing([&] { EXPECT_EQ(baton_elector_close(elector, nullptr), BATON_OK); });
  EXPECT_TRUE(readable(ends, kPatience));  // the work has to end
  EXPECT_EQ(baton_lease_valid(term), 0);
  EXPECT_EQ(hold("leader/outbox"), nullptr);  // and until it has, nobody else leads
  EXPECT_EQ(baton_lease_release(term, nullptr, &error_), BATON_LOST);
  closing.join();
  baton_lease_free(term, nullptr);
  baton_lease* next = hold("leader/outbox");
  EXPECT_NE(next, nullptr) << error_.message;
  baton_lease_free(next, nullptr);
}

TEST_F(CApi, a_wait_for_leadership_ends_when_the_elector_is_closed) {
  baton_lease* leader = hold("leader/outbox");
  baton_elector* elector = nullptr;
  ASSERT_EQ(baton_elect(client_, "outbox", nullptr, &elector, &error_), BATON_OK);
  baton_lease* term = nullptr;
  EXPECT_EQ(baton_elector_take(elector, 1, &term, &error_), BATON_PENDING);
  std::thread waits([&] {
    const int code = baton_elector_take(elector, kPatience, &term, nullptr);
    EXPECT_TRUE(code == BATON_CANCELLED || code == BATON_BAD_REQUEST) << code;
  });
  baton_elector_close(elector, nullptr);
  waits.join();
  baton_lease_free(leader, nullptr);
}

TEST_F(CApi, the_parameters_of_an_event_are_those_of_its_statement) {
  baton_event event = BATON_EVENT_INIT;
  event.type = "DocumentUploaded";
  event.aggregate = "doc-7";
  event.exchange = "documents";
  event.id = "018bd3d5-2f6c-7c4e-8a54-0123456789ab";
  const char* headers[] = {"who", "us", nullptr};
  event.headers = headers;
  const auto parameters = [&](int database) {
    std::size_t length = 0;
    EXPECT_EQ(baton_event_parameters(database, &event, nullptr, 0, &length, &error_), BATON_OK)
        << error_.message;
    std::string whole(length, '\0');
    baton_event_parameters(database, &event, whole.data(), length + 1, nullptr, nullptr);
    return whole;
  };
  const std::string sqlite =
      R"(["018bd3d5-2f6c-7c4e-8a54-0123456789ab","DocumentUploaded","","doc-7","documents",)"
      R"("document.uploaded","{}","{\"who\":\"us\"}","","","",1)";
  EXPECT_EQ(parameters(BATON_SQLITE), sqlite + "]");
  EXPECT_EQ(parameters(BATON_POSTGRESQL), sqlite + ",false]");
  event.type = "";
  EXPECT_EQ(baton_event_parameters(BATON_SQLITE, &event, nullptr, 0, nullptr, &error_),
            BATON_BAD_REQUEST);
}

TEST_F(CApi, a_forked_child_can_neither_use_nor_end_what_its_parent_has) {
  baton_lease* lease = hold("report");
  baton_request* request = ask("report");
  baton_elector* elector = nullptr;
  ASSERT_EQ(baton_elect(client_, "outbox", nullptr, &elector, &error_), BATON_OK);
  const pid_t child = fork();
  if (child == 0) {
    baton_lease* none = nullptr;
    bool refused = baton_lease_valid(lease) == 0 && baton_lease_token(lease) == 0;
    refused &= baton_acquire(client_, "other", nullptr, &none, nullptr) == BATON_BAD_REQUEST;
    refused &= baton_request_take(request, 0, &none, nullptr) == BATON_BAD_REQUEST;
    refused &= baton_elector_take(elector, 0, &none, nullptr) == BATON_BAD_REQUEST;
    refused &= baton_lease_release(lease, nullptr, nullptr) == BATON_BAD_REQUEST;
    refused &= baton_request_free(request, nullptr) == BATON_OK;
    refused &= baton_elector_close(elector, nullptr) == BATON_OK;
    refused &= baton_lease_free(lease, nullptr) == BATON_OK;
    refused &= baton_close(client_, nullptr) == BATON_OK;
#ifndef __SANITIZE_THREAD__  // which ends a child of several threads that starts one
    baton_client* own = nullptr;
    refused &= baton_open("memory:", nullptr, &own, nullptr) == BATON_OK;
    refused &= baton_acquire(own, "report", nullptr, &none, nullptr) == BATON_OK;
#endif
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(baton_lease_valid(lease), 1);
  EXPECT_EQ(hold("report"), nullptr);
  baton_request_free(request, nullptr);
  baton_elector_close(elector, nullptr);
  baton_lease_free(lease, nullptr);
}

TEST_F(CApi, many_threads_use_and_free_the_same_handles) {
  std::atomic<int> held{0};
  for (int round = 0; round < 20; ++round) {
    baton_lease* lease = hold("report", kPatience);
    ASSERT_NE(lease, nullptr) << error_.message;
    std::vector<std::thread> threads;
    std::atomic<int> freed{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        int fd = -1;
        (void)baton_lease_fd(lease, &fd, nullptr);
        held += baton_lease_valid(lease);
        if (i % 2 == 0 && baton_lease_free(lease, nullptr) == BATON_OK) ++freed;
        (void)baton_lease_fence_text(lease, nullptr, 0);
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(freed, 1);
  }
  EXPECT_GT(held, 0);
}

}  // namespace
}  // namespace baton::test
