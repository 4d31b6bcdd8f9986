// Cron expressions and time zones: what is understood, what is refused, and what happens on the two
// days of the year on which clocks change.

#include "schedule/cron.h"

#include <gtest/gtest.h>

#include "node/wall_time.h"

namespace baton::schedule {
namespace {

UtcSeconds utc(std::string_view text) {
  return std::chrono::floor<std::chrono::seconds>(
      node::parse_time(std::string(text) + ":00.000Z").value());
}

std::string shown(UtcSeconds time) { return node::print_time(time).substr(0, 16); }

Cron cron(std::string_view expression, std::string_view zone = "UTC") {
  return Cron::parse(expression, TimeZone::load(zone).value()).value();
}

std::string next(const Cron& cron, std::string_view after) { return shown(cron.next(utc(after))); }

// The first `count` times after `after`, in UTC.
std::vector<std::string> times(const Cron& cron, std::string_view after, int count) {
  std::vector<std::string> all;
  UtcSeconds at = utc(after);
  for (int i = 0; i < count; ++i) {
    at = cron.next(at);
    all.push_back(shown(at));
  }
  return all;
}
using Times = std::vector<std::string>;

TEST(Cron, finds_the_next_time_strictly_after) {
  EXPECT_EQ(next(cron("0 2 * * *"), "2026-11-16T01:59"), "2026-11-16T02:00");
  EXPECT_EQ(next(cron("0 2 * * *"), "2026-11-16T02:00"), "2026-11-17T02:00");
  EXPECT_EQ(next(cron("*/15 * * * *"), "2026-11-16T02:16"), "2026-11-16T02:30");
  EXPECT_EQ(next(cron("30 8 * * MON-FRI"), "2026-11-13T09:00"), "2026-11-16T08:30");
  EXPECT_EQ(next(cron("0 0 1 jan *"), "2026-11-16T00:00"), "2027-01-01T00:00");
  EXPECT_EQ(next(cron("5,10 0-3/2 * * *"), "2026-11-16T00:10"), "2026-11-16T02:05");
  EXPECT_EQ(next(cron("0 0 * * 7"), "2026-11-16T00:00"), "2026-11-22T00:00");
  EXPECT_EQ(next(cron("@weekly"), "2026-11-16T00:00"), "2026-11-22T00:00");
  EXPECT_EQ(next(cron("10/20 * * * *"), "2026-11-16T00:00"), "2026-11-16T00:10");
}

TEST(Cron, either_day_will_do_if_both_are_restricted) {
  EXPECT_EQ(times(cron("0 0 13 * FRI"), "2026-11-01T00:00", 3),
            (Times{"2026-11-06T00:00", "2026-11-13T00:00", "2026-11-20T00:00"}));
}

TEST(Cron, finds_a_29_february_eight_years_away) {
  EXPECT_EQ(next(cron("0 0 29 2 *"), "2096-02-29T00:00"), "2104-02-29T00:00");
}

TEST(Cron, refuses_what_it_does_not_understand_in_one_line) {
  const auto refused = [](std::string_view expression) {
    const auto parsed = Cron::parse(expression, TimeZone::load("UTC").value());
    EXPECT_FALSE(parsed) << expression;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(refused("0 0 * *"),
            "cron: '0 0 * *' has 4 fields; five are needed: minute hour day month weekday");
  EXPECT_EQ(refused("60 0 * * *"), "cron: minute '60' is not from 0 to 59");
  EXPECT_EQ(refused("0 0 0 * *"), "cron: day '0' is not from 1 to 31");
  EXPECT_EQ(refused("0 0 * FOO *"),
            "cron: month 'FOO' is not understood; it takes JAN…DEC or 1 to 12");
  EXPECT_EQ(refused("0 5-3 * * *"), "cron: hour '5-3' is a range that ends before it begins");
  EXPECT_EQ(refused("*/0 * * * *"), "cron: minute '*/0' has a step that is not a number above 0");
  EXPECT_EQ(refused("0 0 30 2 *"), "cron: '0 0 30 2 *' never fires: no date matches it");
  EXPECT_EQ(refused("@never"),
            "cron: '@never' is not known; there are @yearly, @annually, @monthly, @weekly, @daily, "
            "@midnight, @hourly");
  EXPECT_FALSE(refused("1,,2 * * * *").empty());
  EXPECT_FALSE(refused("").empty());
  EXPECT_FALSE(refused(std::string(1000, '*')).empty());
}

TEST(TimeZone, knows_summer_and_winter_now_and_after_its_table_ends) {
  const auto berlin = TimeZone::load("Europe/Berlin").value();
  EXPECT_EQ(berlin->offset(utc("2026-01-15T12:00")), std::chrono::hours(1));
  EXPECT_EQ(berlin->offset(utc("2026-07-15T12:00")), std::chrono::hours(2));
  EXPECT_EQ(berlin->offset(utc("2080-01-15T12:00")), std::chrono::hours(1));
  EXPECT_EQ(berlin->offset(utc("2080-07-15T12:00")), std::chrono::hours(2));
  const auto sydney = TimeZone::load("Australia/Sydney").value();
  EXPECT_EQ(sydney->offset(utc("2080-01-15T12:00")), std::chrono::hours(11));
  EXPECT_EQ(sydney->offset(utc("2080-07-15T12:00")), std::chrono::hours(10));
  const auto kolkata = TimeZone::load("Asia/Kolkata").value();
  EXPECT_EQ(kolkata->offset(utc("2026-07-15T12:00")), std::chrono::minutes(330));
}

TEST(TimeZone, a_wall_time_comes_once_twice_or_never) {
  using Kind = TimeZone::Moments::Kind;
  const auto berlin = TimeZone::load("Europe/Berlin").value();
  const auto local = [](std::string_view text) {
    return LocalSeconds(utc(text).time_since_epoch());
  };
  const auto once = berlin->to_utc(local("2026-03-28T02:30"));
  EXPECT_EQ(once.kind, Kind::once);
  EXPECT_EQ(shown(once.first), "2026-03-28T01:30");
  const auto never = berlin->to_utc(local("2026-03-29T02:30"));
  EXPECT_EQ(never.kind, Kind::never);
  EXPECT_EQ(shown(never.first), "2026-03-29T01:00") << "the moment of the change";
  const auto twice = berlin->to_utc(local("2026-10-25T02:30"));
  EXPECT_EQ(twice.kind, Kind::twice);
  EXPECT_EQ(shown(twice.first), "2026-10-25T00:30");
  EXPECT_EQ(shown(twice.second), "2026-10-25T01:30");
}

TEST(TimeZone, round_trips_every_hour_of_a_year_in_several_zones) {
  for (const auto* name : {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                           "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia"}) {
    const auto zone = TimeZone::load(name).value();
    for (UtcSeconds at = utc("2026-01-01T00:00"); at < utc("2027-01-01T00:00");
         at += std::chrono::minutes(30)) {
      const auto moments = zone->to_utc(zone->to_local(at));
      ASSERT_TRUE(moments.first == at || moments.second == at) << name << " " << shown(at);
    }
  }
}

TEST(TimeZone, refuses_names_that_are_none_and_files_that_are_damaged) {
  for (const auto* name : {"", "Europe/Berlim", "../../etc/passwd", "/etc/passwd", "a b"}) {
    EXPECT_FALSE(TimeZone::load(name)) << name;
  }
  EXPECT_NE(TimeZone::load("Europe/Berlim").error().message.find("tzdata"), std::string::npos);
  EXPECT_FALSE(TimeZone::parse("x", ""));
  EXPECT_FALSE(TimeZone::parse("x", "TZif2"));
  EXPECT_FALSE(TimeZone::parse("x", "TZif" + std::string(60, '\x7f')));
  EXPECT_FALSE(parse_yearly_rule("CET-1CEST"));
  EXPECT_FALSE(parse_yearly_rule("CET-1CEST,M13.5.0,M10.5.0"));
  EXPECT_TRUE(parse_yearly_rule("<+0330>-3:30"));
}

// Clocks in Berlin go from 02:00 to 03:00 on 29 March 2026 (at 01:00 UTC).
TEST(CronInSpring, a_time_that_does_not_exist_runs_once_when_the_clocks_change) {
  EXPECT_EQ(times(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T00:00", 3),
            (Times{"2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"}));
  EXPECT_EQ(times(cron("0,20,40 2 * * *", "Europe/Berlin"), "2026-03-29T00:00", 2),
            (Times{"2026-03-29T01:00", "2026-03-30T00:00"}))
      << "the three of them once";
}

TEST(CronInSpring, a_job_of_every_hour_just_goes_on) {
  EXPECT_EQ(times(cron("30 * * * *", "Europe/Berlin"), "2026-03-29T00:00", 3),
            (Times{"2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"}));
}

// Clocks in Berlin go from 03:00 to 02:00 on 25 October 2026 (at 01:00 UTC).
TEST(CronInAutumn, a_time_that_comes_twice_runs_the_first_time) {
  EXPECT_EQ(times(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00", 2),
            (Times{"2026-10-25T00:30", "2026-10-26T01:30"}));
}

TEST(CronInAutumn, a_job_of_every_hour_runs_both_times) {
  EXPECT_EQ(
      times(cron("30 * * * *", "Europe/Berlin"), "2026-10-25T00:00", 4),
      (Times{"2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30", "2026-10-25T03:30"}));
}

TEST(CronProperty, next_is_after_and_skips_nothing_that_matches) {
  // Every minute of the week around a change, against the definition, for a job of every hour.
  const auto job = cron("*/7 * * * *", "America/New_York");
  const auto zone = TimeZone::load("America/New_York").value();
  UtcSeconds expected = utc("2026-10-30T00:00");
  for (UtcSeconds at = expected; at < utc("2026-11-04T00:00"); at += std::chrono::minutes(1)) {
    const auto local = zone->to_local(at).time_since_epoch() / std::chrono::minutes(1) % 60;
    if (local % 7 != 0 || at == expected) continue;
    ASSERT_EQ(shown(job.next(expected)), shown(at));
    expected = at;
  }
}

}  // namespace
}  // namespace baton::schedule
