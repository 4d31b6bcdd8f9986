#include "baton/event.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/event_id.h"
#include "event/headers.h"
#include "event/message_headers.h"

namespace baton {
namespace {

Event good() {
  return {.type = "DocumentUploaded", .aggregate = "doc-1", .payload = R"({"pages":3})"};
}

void refused(const Event& event, const std::string& part) {
  const auto checked = check_event(event);
  ASSERT_FALSE(checked) << part;
  EXPECT_EQ(checked.error().code, Code::bad_request);
  EXPECT_NE(checked.error().message.find(part), std::string::npos) << checked.error().message;
  EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
}

template <typename Change>
void refused_with(Change change, const std::string& part) {
  Event event = good();
  change(event);
  refused(event, part);
}

// --- ids -----------------------------------------------------------------------------------------

TEST(EventId, is_a_uuid_of_version_7) {
  const std::string id = make_event_id();
  EXPECT_TRUE(is_event_id(id)) << id;
  EXPECT_EQ(id[14], '7');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
}

TEST(EventId, has_the_time_of_its_making) {
  // 1,700,000,000.5 s after 1970: 0x018bcfe569f4 ms.
  const auto tick = event::tick_of(1'700'000'000'500'000'000);
  EXPECT_EQ(event::format_event_id(tick, 0), "018bcfe5-69f4-7000-8000-000000000000");
  EXPECT_EQ(event::format_event_id(tick, ~0ULL), "018bcfe5-69f4-7000-bfff-ffffffffffff");
  const auto half_a_millisecond_later = event::tick_of(1'700'000'000'500'500'000);
  EXPECT_EQ(event::format_event_id(half_a_millisecond_later, 0),
            "018bcfe5-69f4-7800-8000-000000000000");
  EXPECT_EQ(event::tick_of(-5), 0U);
}

TEST(EventId, made_later_sorts_behind_even_if_the_clock_goes_back) {
  EXPECT_EQ(event::next_tick(10, 50), 50U);
  EXPECT_EQ(event::next_tick(50, 50), 51U);
  EXPECT_EQ(event::next_tick(50, 7), 51U);
  std::string last = make_event_id();
  for (int i = 0; i < 100'000; ++i) {
    std::string next = make_event_id();
    ASSERT_LT(last, next);
    last = std::move(next);
  }
}

TEST(EventId, is_made_once_by_all_threads_and_sorts_within_each) {
  std::vector<std::vector<std::string>> made(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : made) {
      threads.emplace_back([&own] {
        for (int i = 0; i < 5'000; ++i) own.push_back(make_event_id());
      });
    }
  }
  std::set<std::string> all;
  for (const auto& own : made) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(all.size(), 20'000U);
}

TEST(EventId, differs_in_a_child_process) {
  (void)make_event_id();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string id = make_event_id();
    const bool written = ::write(ends[1], id.data(), id.size()) == 36;
    ::_exit(written ? 0 : 1);
  }
  std::string of_child(36, ' ');
  EXPECT_EQ(::read(ends[0], of_child.data(), of_child.size()), 36);
  const std::string own = make_event_id();
  EXPECT_NE(own.substr(19), of_child.substr(19)) << "the random parts";
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(EventId, any_uuid_in_lower_case_is_one) {
  EXPECT_TRUE(is_event_id("f47ac10b-58cc-4372-a567-0e02b2c3d479"));
  for (const std::string& text : std::vector<std::string>{
           "", "f47ac10b", "F47AC10B-58CC-4372-A567-0E02B2C3D479",
           "f47ac10b-58cc-4372-a567-0e02b2c3d47", "f47ac10b-58cc-4372-a567-0e02b2c3d4790",
           "{f47ac10b-58cc-4372-a567-0e02b2c3d479}", "f47ac10b58cc-4372-a567-0e02b2c3d4790",
           "f47ac10b-58cc-4372-a567-0e02b2c3d47g"}) {
    EXPECT_FALSE(is_event_id(text)) << text;
  }
  EXPECT_FALSE(is_event_id(std::string(36, '\0')));
}

// --- what is refused -----------------------------------------------------------------------------

TEST(CheckEvent, accepts_what_events_are) {
  EXPECT_TRUE(check_event(good()));
  Event whole = good();
  whole.id = make_event_id();
  whole.aggregate = "Müller/№ 7 🙂";
  whole.aggregate_type = "Document";
  whole.exchange = "documents";
  whole.routing_key = "document.uploaded.eu";
  whole.headers = {{"tenant", "a\nb"}, {"empty", ""}};
  whole.correlation_id = std::string(kMaxContextId, 'c');
  whole.causation_id = make_event_id();
  whole.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  whole.version = 2;
  const auto checked = check_event(whole);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(CheckEvent, refuses_texts_that_are_missing_too_long_or_not_text) {
  refused_with([](Event& e) { e.type.clear(); }, "needs a type");
  refused_with([](Event& e) { e.aggregate.clear(); }, "needs an aggregate");
  const std::string most(kMaxEventText, 'x');
  Event longest = good();
  longest.type = longest.aggregate = longest.aggregate_type = longest.exchange = most;
  longest.routing_key = most;
  EXPECT_TRUE(check_event(longest));
  for (std::string Event::*text : {&Event::type, &Event::aggregate, &Event::aggregate_type,
                                   &Event::exchange, &Event::routing_key}) {
    refused_with([&](Event& e) { e.*text = most + "x"; }, "256 bytes");
    refused_with([&](Event& e) { e.*text = std::string("a\0b", 3); }, "NUL");
    refused_with([&](Event& e) { e.*text = "a\nb"; }, "control character");
    refused_with([&](Event& e) { e.*text = "a\x7f"; }, "control character");
    refused_with([&](Event& e) { e.*text = "a\xc2\x85"; }, "control character");
    for (const char* broken :
         {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
      refused_with([&](Event& e) { e.*text = broken; }, "not UTF-8");
    }
  }
}

TEST(CheckEvent, refuses_a_type_whose_routing_key_is_empty_or_too_long) {
  refused_with([](Event& e) { e.type = "._-"; }, "no routing key");
  std::string camel;
  while (camel.size() < 254) camel += "Ab";
  refused_with([&](Event& e) { e.type = camel; }, "routing key made from the type");
  Event named = good();
  named.type = camel;
  named.routing_key = "short";
  EXPECT_TRUE(check_event(named));
}

TEST(CheckEvent, refuses_a_payload_that_is_not_json) {
  for (const std::string& payload : std::vector<std::string>{
           "", " ", "{", "{}}", "{'a':1}", "nul", "[1,]", "{\"a\":1,}", "\"\x01\"", "\"\xff\"",
           "\"\\ud800\"", "\xef\xbb\xbf{}", "NaN", "01", "{\"a\" 1}", "{} {}"}) {
    refused_with([&](Event& e) { e.payload = payload; }, "not JSON");
  }
  refused_with([](Event& e) { e.payload = std::string("{}\0", 3); }, "not JSON");
  for (const std::string& payload : std::vector<std::string>{
           "null", "1", "\"text\"", "[]", " {\"a\": [1, 2.5e3, \"\\u0000\"]}\n"}) {
    Event event = good();
    event.payload = payload;
    EXPECT_TRUE(check_event(event)) << payload;
  }
}

TEST(CheckEvent, refuses_a_payload_that_is_too_large_or_too_deep) {
  const auto text_of = [](std::size_t bytes) { return '"' + std::string(bytes - 2, 'x') + '"'; };
  Event event = good();
  event.payload = text_of(kMaxEventPayload);
  EXPECT_TRUE(check_event(event));
  event.payload = text_of(kMaxEventPayload + 1);
  refused(event, "1048577 bytes");
  event.payload = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(check_event(event));
  event.payload = std::string(65, '[') + std::string(65, ']');
  refused(event, "deeper than 64");
  event.payload = std::string(kMaxEventPayload, '[');
  refused(event, "deeper than 64");
}

TEST(CheckEvent, refuses_headers_that_no_message_could_carry) {
  refused_with([](Event& e) { e.headers[""] = "x"; }, "no name");
  refused_with([](Event& e) { e.headers[std::string(256, 'n')] = "x"; }, "256 bytes");
  refused_with([](Event& e) { e.headers["a\nb"] = "x"; }, "control character");
  refused_with([](Event& e) { e.headers["a"] = std::string("\0", 1); }, "NUL");
  refused_with([](Event& e) { e.headers["a"] = "\xff"; }, "not UTF-8");
  refused_with([](Event& e) { e.headers["CC"] = "other.key"; }, "RabbitMQ");
  refused_with([](Event& e) { e.headers["BCC"] = "other.key"; }, "RabbitMQ");
  Event event = good();
  event.headers["a"] = std::string(kMaxEventHeaders - 1, 'x');
  EXPECT_TRUE(check_event(event));
  event.headers["a"] += "x";
  refused(event, "16385 bytes");
}

TEST(CheckEvent, refuses_ids_and_numbers_that_are_none) {
  refused_with([](Event& e) { e.id = "42"; }, "UUID");
  refused_with([](Event& e) { e.id = "F47AC10B-58CC-4372-A567-0E02B2C3D479"; }, "UUID");
  refused_with([](Event& e) { e.version = 0; }, "version");
  refused_with([](Event& e) { e.version = -1; }, "version");
  for (std::string Event::*id : {&Event::correlation_id, &Event::causation_id}) {
    for (const std::string& text :
         std::vector<std::string>{std::string(kMaxContextId + 1, 'x'), std::string("a b"),
                                  std::string("a\x1b[2J"), std::string("é")}) {
      refused_with([&](Event& e) { e.*id = text; }, "visible ASCII");
    }
  }
  refused_with([](Event& e) { e.traceparent = "00-x"; }, "traceparent");
}

// --- context -------------------------------------------------------------------------------------

TEST(ContextId, from_outside_is_kept_if_it_is_harmless_and_replaced_if_not) {
  EXPECT_EQ(usable_context_id("req-42/ABC"), "req-42/ABC");
  EXPECT_EQ(usable_context_id(std::string(kMaxContextId, '~')), std::string(kMaxContextId, '~'));
  for (const std::string& text : std::vector<std::string>{
           std::string(), std::string(kMaxContextId + 1, 'x'), std::string("a b"),
           std::string("\n"), std::string("a\0b", 3), std::string("\x7f"), std::string("ü")}) {
    EXPECT_TRUE(is_event_id(usable_context_id(text))) << text;
  }
}

TEST(Traceparent, from_outside_is_kept_if_it_is_well_formed_and_dropped_if_not) {
  const std::string good_one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(usable_traceparent(good_one), good_one);
  EXPECT_EQ(usable_traceparent("cc" + good_one.substr(2) + "-more"),
            "cc" + good_one.substr(2) + "-more");
  for (const std::string& text :
       {std::string(), good_one + "-more", good_one.substr(1), "ff" + good_one.substr(2),
        "cc" + good_one.substr(2) + "more", "cc" + good_one.substr(2) + "-\n",
        "cc" + good_one.substr(2) + "-" + std::string(200, 'x'),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}) {
    EXPECT_EQ(usable_traceparent(text), "") << text;
  }
}

// --- routing keys and headers --------------------------------------------------------------------

TEST(RoutingKey, has_the_words_of_the_type) {
  for (const auto& [type, key] : std::vector<std::pair<std::string, std::string>>{
           {"DocumentUploaded", "document.uploaded"},
           {"documentUploaded", "document.uploaded"},
           {"document.uploaded", "document.uploaded"},
           {"document_uploaded", "document.uploaded"},
           {"Document-Uploaded now", "document.uploaded.now"},
           {"PDFUploaded", "pdf.uploaded"},
           {"UploadedPDF", "uploaded.pdf"},
           {"OrderV2Created", "order.v2.created"},
           {"A", "a"},
           {"AB", "ab"},
           {"ABc", "a.bc"},
           {"ÄnderungGemacht", "Änderung.gemacht"},
           {"..a..B..", "a.b"},
           {"", ""},
           {"._-", ""}}) {
    EXPECT_EQ(routing_key_of(type), key) << type;
  }
}

TEST(Headers, come_back_as_they_were) {
  const event::Headers headers{{"a", ""}, {"tenant", "\"ü\"\n\\"}};
  EXPECT_EQ(event::print_headers({}), "{}");
  EXPECT_EQ(event::parse_headers(event::print_headers(headers)).value(), headers);
  EXPECT_EQ(event::parse_headers(R"({"n":1,"o":{"a":[]}})").value(),
            (event::Headers{{"n", "1"}, {"o", R"({"a":[]})"}}));
  for (const std::string& text : std::vector<std::string>{"", "[]", "x", "{", "1"}) {
    EXPECT_FALSE(event::parse_headers(text)) << text;
  }
  EXPECT_FALSE(event::parse_headers(std::string(100'000, '[')));
}

// --- messages ------------------------------------------------------------------------------------

event::SentEvent sent_event() {
  return {.event = {.id = make_event_id(),
                    .type = "DocumentUploaded",
                    .aggregate = "doc-1",
                    .aggregate_type = "document",
                    .exchange = "documents",
                    .routing_key = "document.uploaded",
                    .payload = R"({"pages":3})",
                    .headers = {{"tenant", "blue"}},
                    .correlation_id = "c-1",
                    .causation_id = "c-2",
                    .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                    .version = 2},
          .lane = 7,
          .position = 9'000'000'000,
          .occurred_at = event::parse_time("2026-11-18T20:14:03.271Z").value()};
}

TEST(MessageHeaders, have_the_names_that_consumers_know) {
  const auto sent = sent_event();
  const Message message = event::to_message(sent);
  EXPECT_EQ(message.id, sent.event.id);
  EXPECT_EQ(message.exchange, "documents");
  EXPECT_EQ(message.routing_key, "document.uploaded");
  EXPECT_EQ(message.body, R"({"pages":3})");
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.headers,
            (std::map<std::string, std::string>{
                {"type", "DocumentUploaded"},
                {"aggregate", "doc-1"},
                {"aggregate-type", "document"},
                {"version", "2"},
                {"correlation-id", "c-1"},
                {"causation-id", "c-2"},
                {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
                {"occurred-at", "2026-11-18T20:14:03.271Z"},
                {"x-lane", "7"},
                {"x-position", "9000000000"},
                {"tenant", "blue"}}));
}

TEST(MessageHeaders, come_back_as_the_event) {
  const auto sent = sent_event();
  EXPECT_EQ(event::from_message(event::to_message(sent)).value(), sent);
  event::SentEvent least{.event = {.id = make_event_id(), .type = "T", .aggregate = "a"}};
  EXPECT_EQ(event::to_message(least).headers.count("correlation-id"), 0U);
  EXPECT_EQ(event::from_message(event::to_message(least)).value(), least);
}

TEST(MessageHeaders, of_the_event_cannot_stand_for_its_fields) {
  auto sent = sent_event();
  sent.event.headers["x-lane"] = "3";
  sent.event.headers["type"] = "Other";
  sent.event.correlation_id.clear();
  sent.event.headers["correlation-id"] = "forged";
  const Message message = event::to_message(sent);
  EXPECT_EQ(message.headers.at("x-lane"), "7");
  EXPECT_EQ(message.headers.at("type"), "DocumentUploaded");
  EXPECT_EQ(message.headers.count("correlation-id"), 0U);
}

TEST(MessageHeaders, of_a_message_that_was_sent_before_do_not_come_back) {
  const auto sent = sent_event();
  Message message = event::to_message(sent);
  const event::SentEvent least{.event = {.id = make_event_id(), .type = "T", .aggregate = "a"}};
  event::write_message(least, message);
  EXPECT_EQ(message, event::to_message(least));
  event::write_message(sent, message);
  EXPECT_EQ(message, event::to_message(sent));
}

TEST(MessageHeaders, that_are_wrong_are_told) {
  const auto broken_by = [](auto change) {
    Message message = event::to_message(sent_event());
    change(message);
    const auto event = event::from_message(message);
    return event ? std::string() : event.error().message;
  };
  EXPECT_NE(broken_by([](Message& m) { m.id = "17"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers.erase("type"); }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers.erase("aggregate"); }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["version"] = "0"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["version"] = "2x"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["x-lane"] = "-1"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["x-position"] = "1e9"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["occurred-at"] = "yesterday"; }), "");
  EXPECT_NE(broken_by([](Message& m) { m.headers["occurred-at"] = "2026-02-30T00:00:00.000Z"; }),
            "");
  EXPECT_NE(broken_by([](Message& m) { m.body = "{"; }), "");
  // An id that is malformed is no reason to refuse an event, but is not passed on.
  Message message = event::to_message(sent_event());
  message.headers["correlation-id"] = "two words";
  message.headers["causation-id"] = "a\x1b[2J";
  message.headers["traceparent"] = "x";
  const auto event = event::from_message(message).value().event;
  EXPECT_EQ(event.correlation_id, "");
  EXPECT_EQ(event.causation_id, "");
  EXPECT_EQ(event.traceparent, "");
}

}  // namespace
}  // namespace baton
