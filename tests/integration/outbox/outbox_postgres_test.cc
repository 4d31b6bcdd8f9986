// The outbox in a PostgreSQL database.

#include <gtest/gtest.h>

#include <set>

#include "baton/outbox.h"
#include "support/postgres_database.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

class PostgresOutbox : public ::testing::Test {
 protected:
  PostgresOutbox() { install_outbox(session.get()).value(); }

  std::string events() { return session.sql("SELECT count(*) FROM outbox_events"); }

  template <typename T>
  static void refused(const Result<T>& result, Code code, const std::string& part) {
    ASSERT_FALSE(result) << part;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  }

  // What the server says to a call of outbox_add, which must fail.
  std::string refusal(const std::string& arguments) {
    try {
      session.sql("SELECT outbox_add(" + arguments + ", exchange => 'documents')");
    } catch (const std::exception& problem) {
      return problem.what();
    }
    return "accepted";
  }

  Database database;
  Session session{database.url()};
  const Outbox outbox{{.exchange = "documents"}};
  const Event event{.type = "DocumentUploaded", .aggregate = "doc-1", .payload = R"({"a":1})"};
};

TEST_F(PostgresOutbox, an_event_is_there_if_and_only_if_its_transaction_commits) {
  session.sql("BEGIN");
  ASSERT_TRUE(outbox.add(session.get(), event));
  session.sql("ROLLBACK");
  EXPECT_EQ(events(), "0");
  session.sql("BEGIN");
  const auto id = outbox.add(session.get(), event).value();
  session.sql("COMMIT");
  EXPECT_EQ(session.sql("SELECT concat_ws(' ', event_id, type, aggregate_id, exchange, routing_key,"
                        " payload, headers, version, status, correlation_id IS NULL)"
                        " FROM outbox_events"),
            id + R"( DocumentUploaded doc-1 documents document.uploaded {"a":1} {} 1 PENDING t)");
}

TEST_F(PostgresOutbox, several_events_are_added_in_their_order_or_not_at_all) {
  std::vector<Event> several(40, event);
  std::string order;
  for (std::size_t i = 0; i < several.size(); ++i) {
    several[i].aggregate = "Größe \"" + std::to_string(i) + "\" \\ {NULL}";
    order += std::to_string(i) + " ";
  }
  session.sql("BEGIN");
  const auto ids = outbox.add_all(session.get(), several).value();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), several.size());
  EXPECT_TRUE(outbox.add_all(session.get(), {}).value().empty());
  several[7].payload = "{";
  refused(outbox.add_all(session.get(), several), Code::bad_request, "not JSON");
  session.sql("COMMIT");
  EXPECT_EQ(session.sql("SELECT string_agg(substring(aggregate_id from '\"(\\d+)\"'), ' '"
                        " ORDER BY position) || ' ' FROM outbox_events"),
            order);
  EXPECT_EQ(session.sql("SELECT count(*) FROM outbox_events"), "40");
}

TEST_F(PostgresOutbox, all_three_ways_to_add_choose_the_same_lane_and_slot) {
  session.sql("BEGIN");
  std::vector<Event> several;
  for (int i = 0; i < 200; ++i) {
    Event one = event;
    one.aggregate = "aggregate-" + std::to_string(i);
    ASSERT_TRUE(outbox.add(session.get(), one));
    session.sql("SELECT outbox_add('DocumentUploaded', '" + one.aggregate +
                "', exchange => 'documents')");
    several.push_back(one);
  }
  ASSERT_TRUE(outbox.add_all(session.get(), several));
  session.sql("COMMIT");
  EXPECT_EQ(session.sql("SELECT count(*) FROM (SELECT aggregate_id FROM outbox_events"
                        " GROUP BY aggregate_id HAVING count(DISTINCT lane) = 1 AND"
                        " count(*) = 3) a"),
            "200");
  EXPECT_EQ(session.sql("SELECT min(lane) || ' ' || max(lane) || ' ' || count(DISTINCT lane)"
                        " FROM outbox_events"),
            "0 15 16");
  EXPECT_EQ(session.sql("SELECT count(*) FROM outbox_events WHERE slot NOT IN"
                        " (floor(extract(epoch FROM created_at) / 86400)::bigint & 7,"
                        "  (floor(extract(epoch FROM created_at) / 86400)::bigint - 1) & 7)"),
            "0");
}

TEST_F(PostgresOutbox, the_routing_key_of_sql_is_that_of_the_library) {
  for (const char* type :
       {"DocumentUploaded", "documentUploaded", "document.uploaded", "document_uploaded",
        "Document-Uploaded now", "PDFUploaded", "UploadedPDF", "OrderV2Created", "A", "AB", "ABc",
        "ABcD", "aBCDe", "A1B2", "ÄnderungGemacht", "éÉtat", "..a..B..", "x__Y"}) {
    session.sql("SELECT outbox_add('" + std::string(type) + "', 'a', exchange => 'documents')");
    EXPECT_EQ(session.sql("SELECT routing_key FROM outbox_events ORDER BY position DESC LIMIT 1"),
              routing_key_of(type))
        << type;
  }
}

TEST_F(PostgresOutbox, an_add_outside_of_a_transaction_that_can_commit_is_refused) {
  refused(outbox.add(session.get(), event), Code::bad_request, "BEGIN first");
  refused(outbox.add(static_cast<pg_conn*>(nullptr), event), Code::bad_request, "no connection");
  session.sql("BEGIN");
  EXPECT_ANY_THROW(session.sql("SELECT 1 / 0"));
  refused(outbox.add(session.get(), event), Code::bad_request, "roll it back");
  session.sql("ROLLBACK; SET client_encoding = LATIN1; BEGIN");
  refused(outbox.add(session.get(), event), Code::bad_request, "UTF8");
  session.sql("ROLLBACK; SET client_encoding = UTF8");
  EXPECT_EQ(events(), "0");
}

TEST_F(PostgresOutbox, bad_events_are_refused_and_leave_the_transaction_usable) {
  session.sql("BEGIN");
  const auto refused_with = [&](auto change, const std::string& part) {
    Event bad = event;
    change(bad);
    refused(outbox.add(session.get(), bad), Code::bad_request, part);
  };
  refused_with([](Event& e) { e.payload = '"' + std::string(kMaxEventPayload, 'x') + '"'; },
               "1048578 bytes");
  refused_with([](Event& e) { e.payload = "{"; }, "not JSON");
  refused_with([](Event& e) { e.aggregate = std::string("a\0b", 3); }, "NUL");
  refused_with([](Event& e) { e.type.clear(); }, "needs a type");
  refused_with([](Event& e) { e.id = "42"; }, "UUID");
  refused(Outbox().add(session.get(), event), Code::bad_request, "needs an exchange");
  refused(Outbox().add_all(session.get(), std::span(&event, 1)), Code::bad_request,
          "needs an exchange");
  const Outbox misnamed({.exchange = std::string(256, 'x')});
  refused(misnamed.add(session.get(), event), Code::bad_request, "the exchange");
  Event large = event;
  large.payload = '"' + std::string(kMaxEventPayload - 2, 'x') + '"';
  ASSERT_TRUE(outbox.add(session.get(), large));
  session.sql("COMMIT");
  EXPECT_EQ(events(), "1");
}

TEST_F(PostgresOutbox, the_sql_function_refuses_what_the_library_refuses) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"NULL, 'a'", "needs a type"},
           {"'', 'a'", "needs a type"},
           {"'T', ''", "needs an aggregate"},
           {"'._-', 'a'", "no routing key"},
           {"repeat('x', 256), 'a'", "255 bytes"},
           {"'T', repeat('x', 256)", "255 bytes"},
           {"'T', E'a\\nb'", "control character"},
           {"'T', 'a', NULL", "1048576 bytes"},
           {"'T', 'a', to_json(repeat('x', 1048576))::text", "1048576 bytes"},
           {"'T', 'a', '{'", "json"},
           {"'T', 'a', repeat('[', 65) || repeat(']', 65)", "deeper than 64"},
           {"'T', 'a', repeat('{\"a\":[', 33) || repeat(']}', 33)", "deeper than 64"},
           {"'T', 'a', '\"\\ud800\"'", "surrogate"},
           {"'T', 'a', '\"\\\\\\ud800\"'", "surrogate"},
           {"'T', 'a', '\"\\ude00\\ud83d\"'", "surrogate"},
           {"'T', 'a', '\"\\ud83d\\\\\\ude00\"'", "surrogate"},
           {"'T', 'a', '[1e999]'", "too large"},
           {"'T', 'a', '-0.1E+0400'", "too large"},
           {"'T', 'a', repeat('9', 400)", "too large"},
           {"'T', 'a', '1e999999999'", "has a number that is too large"},
           {"'T', 'a', '1e99999999999'", "has a number that is too large"},
           {"'T', 'a', '[0.' || repeat('0', 200000) || '1]'", "has a number that is too large"},
           {"'T', 'a', headers => '[]'", "JSON object"},
           {"'T', 'a', headers => '{\"a\":\"x\\u0000\"}'", "header of an event has a NUL"},
           {"'T', 'a', headers => '{\"a\\u0000\":\"x\"}'", "header of an event has a NUL"},
           {"'T', 'a', headers => '{\"a\":\"\\\\\\u0000\"}'", "header of an event has a NUL"},
           {"'T', 'a', headers => '{\"n\":1}'", "are texts"},
           {"'T', 'a', headers => '{\"CC\":\"x\"}'", "RabbitMQ"},
           {"'T', 'a', headers => '{\"a\\nb\":\"x\"}'", "control character"},
           {"'T', 'a', headers => json_build_object('a', repeat('x', 16384))::text", "16384 bytes"},
           {"'T', 'a', correlation_id => 'a b'", "visible ASCII"},
           {"'T', 'a', causation_id => repeat('x', 129)", "visible ASCII"},
           {"'T', 'a', traceparent => '00-x'", "traceparent"},
           {"'T', 'a', traceparent => '00-' || repeat('0', 32) || '-00f067aa0ba902b7-01'",
            "traceparent"},
           {"'T', 'a', version => 0", "counts from 1"},
           {"'T', 'a', event_id => '42'", "uuid"}}) {
    EXPECT_NE(refusal(arguments).find(part), std::string::npos)
        << arguments << ": " << refusal(arguments);
  }
  for (const std::string nowhere : {"", ", exchange => ''", ", exchange => NULL"}) {
    try {
      session.sql("SELECT outbox_add('T', 'a'" + nowhere + ")");
      ADD_FAILURE() << nowhere;
    } catch (const std::exception& problem) {
      EXPECT_NE(std::string(problem.what()).find("needs an exchange"), std::string::npos)
          << problem.what();
    }
  }
  EXPECT_EQ(events(), "0");
  const std::string id = session.sql(
      "SELECT outbox_add('T', 'a', exchange => 'documents', traceparent =>"
      " '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', headers => '{\"k\":\"v\"}')");
  EXPECT_TRUE(is_event_id(id)) << id;
  EXPECT_EQ(id[14], '7');
}

// What the server calls JSON, a consumer must be able to read, or it ends as a dead letter.
TEST_F(PostgresOutbox, the_sql_function_takes_what_the_library_takes) {
  for (const std::string& payload : std::vector<std::string>{
           std::string(64, '[') + std::string(64, ']'), "\"" + std::string(100, '[') + "\"",
           "[\"a\\\"" + std::string(100, '{') + "\"]", R"("\ud800")",
           R"(["\\ud800", "\ud83d\ude00", "\u0000"])", "[1e308, 1e-999, 0e999]",
           "1.7976931348623157e308", "\"1e999\""}) {
    const bool good = check_event({.type = "T", .aggregate = "a", .payload = payload}).has_value();
    const std::string why = refusal("'T', 'a', $payload$" + payload + "$payload$");
    EXPECT_EQ(good, why == "accepted") << payload << ": " << why;
  }
  // A backslash, and then no escape.
  EXPECT_EQ(refusal(R"('T', 'a', headers => '{"a":"\\u0000"}')"), "accepted");
}

TEST_F(PostgresOutbox, the_sql_function_works_where_backslashes_are_escapes) {
  session.sql("SET standard_conforming_strings = off; SET escape_string_warning = off");
  session.sql("SELECT outbox_add('DocumentUploaded', 'a', exchange => 'documents')");
  EXPECT_EQ(session.sql("SELECT routing_key FROM outbox_events"), "document.uploaded");
}

TEST_F(PostgresOutbox, missing_tables_are_named_with_the_command_that_makes_them) {
  const Database empty;
  Session other(empty.url());
  other.sql("BEGIN");
  refused(outbox.add(other.get(), event), Code::bad_store, "baton outbox install");
  other.sql("ROLLBACK; BEGIN");
  refused(outbox.add_all(other.get(), std::span(&event, 1)), Code::bad_store,
          "baton outbox install");
}

// Its rows could not be read by relays, which speak UTF-8, or not stored by consumers.
TEST_F(PostgresOutbox, a_database_of_another_encoding_is_refused) {
  const std::string name = database.name() + "_ascii";
  session.sql("CREATE DATABASE " + name +
              " TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'");
  {
    Session other(database.url().substr(0, database.url().rfind('/') + 1) + name);
    refused(install_outbox(other.get()), Code::bad_store, "SQL_ASCII");
    EXPECT_EQ(other.sql("SELECT to_regclass('outbox_events') IS NULL"), "t");
  }
  session.sql("DROP DATABASE " + name + " WITH (FORCE)");
}

TEST_F(PostgresOutbox, the_collation_of_the_caller_changes_no_lane) {
  session.sql(
      "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
      " SELECT outbox_add('T', 'Doc-1', exchange => 'x');"
      " SELECT outbox_add('T', 'Doc-1' COLLATE loose, exchange => 'x')");
  EXPECT_EQ(session.sql("SELECT count(DISTINCT lane) FROM outbox_events"), "1");
  EXPECT_EQ(events(), "2");
}

TEST_F(PostgresOutbox, installing_again_changes_nothing_and_keeps_the_search_path) {
  session.sql("CREATE SCHEMA shop; SET search_path = public, shop; BEGIN");
  ASSERT_TRUE(outbox.add(session.get(), event));
  ASSERT_TRUE(install_outbox(session.get()));
  EXPECT_EQ(session.sql("SHOW search_path"), "public, shop");
  session.sql("COMMIT");
  ASSERT_TRUE(install_outbox(session.get()));
  EXPECT_EQ(events(), "1");
}

TEST_F(PostgresOutbox, tables_of_a_newer_version_are_refused) {
  session.sql("UPDATE outbox_version SET version = 99");
  refused(install_outbox(session.get()), Code::bad_store, "newer Baton");
  EXPECT_EQ(PQtransactionStatus(session.get()), PQTRANS_IDLE);
}

TEST_F(PostgresOutbox, a_schema_that_is_missing_or_cannot_be_written_in_sql_is_refused) {
  session.sql("SET search_path = nowhere");
  refused(install_outbox(session.get()), Code::bad_request, "search_path");
  session.sql("CREATE SCHEMA \"a'b\"; SET search_path = \"a'b\"");
  refused(install_outbox(session.get()), Code::bad_request, "quote");
}

TEST_F(PostgresOutbox, each_schema_has_an_outbox_of_its_own) {
  session.sql("CREATE SCHEMA \"My Shop\"; SET search_path = \"My Shop\", public");
  ASSERT_TRUE(install_outbox(session.get()));
  session.sql("BEGIN");
  ASSERT_TRUE(outbox.add(session.get(), event));
  session.sql("COMMIT");
  EXPECT_EQ(session.sql("SELECT count(*) FROM \"My Shop\".outbox_events"), "1");
  EXPECT_EQ(session.sql("SELECT count(*) FROM public.outbox_events"), "0");
  // The function itself knows where it belongs.
  session.sql("SET search_path = pg_catalog; SELECT public.outbox_add('T', 'a', exchange => 'x')");
  EXPECT_EQ(session.sql("SELECT count(*) FROM public.outbox_events"), "1");
}

// Also what has no search_path of its own.
TEST_F(PostgresOutbox, names_are_not_looked_up_in_schemas_of_the_caller) {
  session.sql("CREATE SCHEMA evil");
  for (const std::string function :
       {"hashtextextended(text, bigint) RETURNS bigint", "floor(numeric) RETURNS numeric",
        "clock_timestamp() RETURNS timestamptz", "int8and(bigint, integer) RETURNS bigint",
        "numeric_div(numeric, integer) RETURNS numeric", "texteq(text, text) RETURNS boolean",
        "pg_try_advisory_xact_lock_shared(integer, integer) RETURNS boolean",
        "pg_try_advisory_xact_lock_shared(integer, smallint) RETURNS boolean",
        "pg_notify(text, text) RETURNS void"}) {
    session.sql("CREATE FUNCTION evil." + function +
                " LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$");
  }
  session.sql(
      "CREATE OPERATOR evil.& (FUNCTION = evil.int8and, LEFTARG = bigint, RIGHTARG = integer);"
      "CREATE OPERATOR evil./ (FUNCTION = evil.numeric_div, LEFTARG = numeric, RIGHTARG = integer);"
      "CREATE OPERATOR evil.= (FUNCTION = evil.texteq, LEFTARG = text, RIGHTARG = text);"
      "SET search_path = evil, pg_catalog, public; BEGIN");
  EXPECT_TRUE(outbox.add(session.get(), event));
  EXPECT_TRUE(outbox.add_all(session.get(), std::span(&event, 1)));
  session.sql("SELECT outbox_add('T', 'a', exchange => 'x'); COMMIT; SET search_path = public");
  EXPECT_EQ(events(), "3");
}

TEST_F(PostgresOutbox, a_role_that_may_only_insert_can_add) {
  const std::string role = "writer_" + database.name();
  session.sql("CREATE ROLE " + role + " LOGIN; GRANT USAGE ON SCHEMA public TO " + role);
  session.sql("SET ROLE " + role + "; BEGIN");
  refused(outbox.add(session.get(), event), Code::unauthorized, "INSERT on outbox_events");
  session.sql("ROLLBACK; RESET ROLE; GRANT INSERT ON outbox_events TO " + role);
  session.sql("SET ROLE " + role + "; BEGIN");
  EXPECT_TRUE(outbox.add(session.get(), event));
  EXPECT_TRUE(outbox.add_all(session.get(), std::span(&event, 1)));
  session.sql("SELECT outbox_add('T', 'a', exchange => 'x'); COMMIT; RESET ROLE");
  EXPECT_EQ(events(), "3");
  session.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

// --- waking the relay ----------------------------------------------------------------------------

class PostgresOutboxWake : public PostgresOutbox {
 protected:
  PostgresOutboxWake() { relay.sql("LISTEN baton_outbox"); }

  // How many notifications the relay has got; it answers only after all those before.
  std::size_t notified() {
    relay.sql("SELECT 1");
    std::size_t count = 0;
    while (PGnotify* one = PQnotifies(relay.get())) {
      EXPECT_EQ(one->extra, lane);
      PQfreemem(one);
      ++count;
    }
    return count;
  }
  std::string sleep(const std::string& function) {
    return relay.sql("SELECT " + function + "('outbox_events'::regclass::oid::int, " + lane + ")");
  }
  void add(const Outbox& to) {
    session.sql("BEGIN");
    EXPECT_TRUE(to.add(session.get(), event));
    EXPECT_TRUE(to.add_all(session.get(), std::span(&event, 1)));
    session.sql("COMMIT");
  }

  Session relay{database.url()};
  const std::string lane = relay.sql("SELECT hashtextextended('doc-1', 0) & 15");
};

TEST_F(PostgresOutboxWake, a_relay_is_notified_only_if_it_sleeps_on_the_lane) {
  add(outbox);
  EXPECT_EQ(notified(), 0U);
  ASSERT_EQ(sleep("pg_try_advisory_lock"), "t");
  add(outbox);
  EXPECT_EQ(notified(), 1U) << "the two of a transaction are one";
  ASSERT_EQ(sleep("pg_advisory_unlock"), "t");
  add(outbox);
  EXPECT_EQ(notified(), 0U);
}

TEST_F(PostgresOutboxWake, a_relay_cannot_go_to_sleep_while_an_event_is_being_added) {
  session.sql("BEGIN");
  ASSERT_TRUE(outbox.add(session.get(), event));
  EXPECT_EQ(sleep("pg_try_advisory_lock"), "f");
  session.sql("COMMIT");
  EXPECT_EQ(sleep("pg_try_advisory_lock"), "t");
}

TEST_F(PostgresOutboxWake, a_quiet_outbox_notifies_nobody_and_holds_no_lock) {
  ASSERT_EQ(sleep("pg_try_advisory_lock"), "t");
  add(Outbox({.exchange = "documents", .quiet = true}));
  session.sql("SELECT outbox_add('T', 'doc-1', exchange => 'x', quiet => true)");
  EXPECT_EQ(notified(), 0U);
}

// A transaction that has notified cannot be prepared, nor can one that might have to.
TEST(PostgresOutboxPrepared, a_transaction_with_a_quiet_outbox_can_be_prepared) {
  const PostgresServer server({.settings = {{"max_prepared_transactions", "5"}}});
  Session session(server.url());
  Session relay(server.url());
  install_outbox(session.get()).value();
  ASSERT_EQ(relay.sql("SELECT bool_and(pg_try_advisory_lock('outbox_events'::regclass::oid::int,"
                      " lane)) FROM generate_series(0, 15) lane"),
            "t");
  const Event event{.type = "DocumentUploaded", .aggregate = "doc-1"};
  session.sql("BEGIN");
  ASSERT_TRUE(Outbox({.exchange = "documents", .quiet = true}).add(session.get(), event));
  session.sql("PREPARE TRANSACTION 'quiet'");
  EXPECT_EQ(session.sql("SELECT count(*) FROM outbox_events"), "0");
  session.sql("COMMIT PREPARED 'quiet'");
  EXPECT_EQ(session.sql("SELECT count(*) FROM outbox_events"), "1");
  session.sql("BEGIN");
  ASSERT_TRUE(Outbox({.exchange = "documents"}).add(session.get(), event));
  EXPECT_ANY_THROW(session.sql("PREPARE TRANSACTION 'loud'"));
}

// --- cost ----------------------------------------------------------------------------------------

TEST_F(PostgresOutbox, marking_events_sent_changes_no_index) {
  session.sql("BEGIN");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(outbox.add(session.get(), event));
  session.sql("COMMIT");
  session.sql("UPDATE outbox_events SET status = 'SENT', sent_at = clock_timestamp()");
  session.sql("SELECT pg_stat_force_next_flush()");
  EXPECT_EQ(session.sql("SELECT sum(n_tup_upd) || ' ' || sum(n_tup_hot_upd)"
                        " FROM pg_stat_user_tables WHERE relname LIKE 'outbox_events_%'"),
            "100 100");
}

TEST_F(PostgresOutbox, a_plain_insert_without_a_lane_fails) {
  EXPECT_ANY_THROW(
      session.sql("INSERT INTO outbox_events (slot, event_id, type, aggregate_type, aggregate_id,"
                  " exchange, routing_key, payload, headers, version)"
                  " VALUES (0, gen_random_uuid(), 'T', '', 'a', '', 't', '{}', '{}', 1)"));
}

}  // namespace
}  // namespace baton::test
