#include "apps/warehouse/generator.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "sql/transaction.h"

namespace baton::warehouse {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::microseconds;

constexpr std::int64_t kMostAtOnce = 50;

std::string table_statement(const ObserverType& type, sql::Kind kind) {
  const bool postgres = kind == sql::Kind::postgres;
  std::string sql = "CREATE TABLE IF NOT EXISTS " + type.table +
                    " (id TEXT PRIMARY KEY, channel TEXT NOT NULL, changed_at BIGINT NOT NULL";
  for (const std::string& column : type.columns) sql += ", " + column + " TEXT";
  if (postgres) sql += ", written_by xid8 NOT NULL DEFAULT pg_current_xact_id()";
  sql += "); CREATE INDEX IF NOT EXISTS " + type.table + "_time ON " + type.table +
         " (channel, changed_at, id)";
  if (postgres) {
    sql += "; CREATE INDEX IF NOT EXISTS " + type.table + "_xid ON " + type.table +
           " (channel, written_by, id)";
  }
  return sql;
}

std::string insert_statement(const ObserverType& type) {
  std::string columns = "id, channel, changed_at";
  std::string values = "$1, $2, $3";
  for (std::size_t i = 0; i < type.columns.size(); ++i) {
    columns += ", " + type.columns[i];
    values += ", $" + std::to_string(i + 4);
  }
  return "INSERT INTO " + type.table + " (" + columns + ") VALUES (" + values + ")";
}

sql::Options source_options(const Config& config, const ObserverType& type) {
  return {.name = "source of " + type.name,
          .application = "warehouse",
          .statement_timeout = config.statement_timeout};
}

// One of several that write rows of one type at the same time.
class Writer {
 public:
  Writer(const Config& config, const GeneratorSettings& settings, const ObserverType& type,
         std::uint64_t seed, std::int64_t rows)
      : settings_(settings),
        type_(type),
        channels_(config.observers.at(type.name)),
        url_(config.source_of(type.name)),
        options_(source_options(config, type)),
        insert_(insert_statement(type)),
        random_(seed),
        rows_(rows) {}

  Result<Generated> run() {
    auto database = sql::Connection::open(url_, options_);
    if (!database) return database.error();
    const auto began = Clock::now();
    while (done_.rows < rows_) {
      const auto elapsed = Clock::now() - began;
      const double share = std::min(1.0, std::chrono::duration<double>(elapsed) /
                                             std::chrono::duration<double>(settings_.duration));
      const auto due = static_cast<std::int64_t>(share * static_cast<double>(rows_)) - done_.rows;
      if (due <= 0) {
        std::this_thread::sleep_for(Millis(2));
        continue;
      }
      if (auto ok = write(**database, std::min(due, kMostAtOnce)); !ok) return ok.error();
    }
    return done_;
  }

 private:
  // Half of them at once, so that they overtake the others.
  Micros pause() {
    const auto most = Micros(settings_.late).count() * 3 / 4;
    if (most == 0 || random_() % 2 == 0) return Micros(0);
    return Micros(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most)));
  }

  Result<void> write(sql::Connection& database, std::int64_t count) {
    const Micros wait = pause();
    // A transaction of SQLite keeps all others from writing: it comes late as a whole. Those of
    // PostgreSQL stay open meanwhile and commit in any order.
    const bool open_meanwhile = database.kind() == sql::Kind::postgres;
    auto clock = clock_of(database);
    if (!clock) return clock.error();
    const std::int64_t tick = std::max<std::int64_t>(1, Micros(settings_.tick).count());
    const std::int64_t stamp = *clock / tick * tick;
    const auto stamped = Clock::now() - Micros(*clock - stamp);
    if (!open_meanwhile) std::this_thread::sleep_for(wait);
    bool too_late = false;
    auto written = database.transaction([&](sql::Transaction&) -> Result<void> {
      for (std::int64_t i = 0; i < count; ++i) {
        if (auto ok = insert(database, stamp); !ok) return ok;
      }
      if (open_meanwhile) std::this_thread::sleep_for(wait);
      // A source that says how late rows can be has to keep to it.
      too_late = settings_.late > Millis(0) && Clock::now() - stamped > settings_.late;
      if (too_late) return Error{.code = Code::timed_out, .message = "too late"};
      return {};
    });
    if (too_late) {
      ++done_.too_late;
      return {};
    }
    if (!written) return written;
    done_.rows += count;
    if (wait >= settings_.tick) done_.late_commits += 1;
    done_.latest = std::max(done_.latest, std::chrono::ceil<Millis>(Clock::now() - stamped));
    return {};
  }

  Result<void> insert(sql::Connection& database, std::int64_t stamp) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string id;
    for (std::uint64_t bits = random_(), i = 0; i < 16; ++i, bits >>= 4U) id += kDigits[bits & 15U];
    sql::Values values{id, channels_[random_() % channels_.size()], stamp};
    for (const std::string& column : type_.columns) {
      values.emplace_back(column + "-" + std::to_string(random_() % 1000));
    }
    auto done = database.query(insert_, values);
    if (!done) return done.error();
    return {};
  }

  const GeneratorSettings settings_;
  const ObserverType& type_;
  const std::vector<std::string> channels_;
  const std::string url_;
  const sql::Options options_;
  const std::string insert_;
  std::mt19937_64 random_;
  const std::int64_t rows_;
  Generated done_;
};

Result<void> make_tables(const Config& config) {
  for (const auto& [name, channels] : config.observers) {
    const ObserverType& type = *observer_type(name).value();
    auto database = sql::Connection::open(config.source_of(name), source_options(config, type));
    if (!database) return database.error();
    // Even a statement that finds everything made waits for those who write to the table.
    if ((*database)->query("SELECT 1 FROM " + type.table + " LIMIT 0")) continue;
    if (auto ok = (*database)->script(table_statement(type, (*database)->kind())); !ok) return ok;
  }
  return {};
}

std::vector<Writer> make_writers(const Config& config, const GeneratorSettings& settings) {
  std::vector<Writer> writers;
  const auto count = static_cast<std::int64_t>(config.observers.size()) * settings.writers;
  const auto all = static_cast<std::int64_t>(
      settings.rate * std::chrono::duration<double>(settings.duration).count());
  std::mt19937_64 seeds(settings.seed);
  for (const auto& [name, channels] : config.observers) {
    for (int i = 0; i < settings.writers; ++i) {
      const auto place = static_cast<std::int64_t>(writers.size());
      const std::int64_t share = all * (place + 1) / count - all * place / count;
      writers.emplace_back(config, settings, *observer_type(name).value(), seeds(), share);
    }
  }
  return writers;
}

}  // namespace

Result<Generated> generate(const Config& config, const GeneratorSettings& settings) {
  if (auto ok = make_tables(config); !ok) return ok.error();
  auto writers = make_writers(config, settings);
  Generated sum;
  std::optional<Error> problem;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (Writer& writer : writers) {
      threads.emplace_back([&] {
        auto done = writer.run();
        const std::lock_guard lock(mutex);
        if (!done) {
          if (!problem) problem = done.error();
          return;
        }
        sum.rows += done->rows;
        sum.late_commits += done->late_commits;
        sum.too_late += done->too_late;
        sum.latest = std::max(sum.latest, done->latest);
      });
    }
  }
  if (problem) return *problem;
  return sum;
}

}  // namespace baton::warehouse
