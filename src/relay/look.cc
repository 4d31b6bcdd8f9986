#include "relay/look.h"

#include <algorithm>
#include <utility>

namespace baton::relay {
namespace {

// With more looks than that unsettled, the next ones are counted with the last: `seen` then
// advances in larger steps.
constexpr std::size_t kMaxLooks = 32;

// From 80 to 120, evenly spread and the same for the same event: it needs no random numbers.
std::int64_t percent_of(Position position, int attempts) {
  auto mixed = static_cast<std::uint64_t>(position) * 0x9E3779B97F4A7C15U +
               static_cast<std::uint64_t>(attempts) * 0xBF58476D1CE4E5B9U;
  mixed ^= mixed >> 31U;
  mixed *= 0x94D049BB133111EBU;
  return 80 + static_cast<std::int64_t>((mixed >> 33U) % 41);
}

}  // namespace

bool Read::takes(Xid xid, Position position, const Snapshot& snapshot) const {
  return !known.shows(xid) && snapshot.shows(xid) && position > behind;
}

bool is_due(bool pending, bool held, bool time_has_come) {
  return pending && (held || time_has_come);
}

bool Window::fits(std::size_t more) const {
  return messages == 0 || (messages < max_messages && bytes + more <= max_bytes);
}

void Window::add(std::size_t more) {
  ++messages;
  bytes += more;
}

void Window::remove(std::size_t fewer) {
  --messages;
  bytes -= fewer;
}

Blame blame_for(PublishOutcome outcome) {
  switch (outcome) {
    case PublishOutcome::taken: return Blame::nobody;
    case PublishOutcome::returned: return Blame::event;
    case PublishOutcome::refused: return Blame::route;
    case PublishOutcome::unknown: return Blame::relay;
  }
  return Blame::relay;
}

Millis retry_delay(const LookOptions& options, int attempts, Position position) {
  const int doublings = std::clamp(attempts - 1, 0, 20);
  return options.first_delay * (std::int64_t{1} << doublings) * percent_of(position, attempts) /
         100;
}

TakeOver take_over(const Snapshot& seen, std::string_view saved_by, std::string_view cluster,
                   Xid xmax) {
  if (saved_by == cluster && seen.xmax <= xmax) return {.from = seen};
  return {.from = {}, .restamp = true};
}

Look::Look(Snapshot from, std::set<std::string> in_index, LookOptions options)
    : options_(options), known_(std::move(from)), held_(std::move(in_index)) {}

std::optional<Read> Look::next_read() const {
  if (undecided_ + decided_.size() > options_.max_rows / 2) return {};
  if (page_) return Read{.known = known_, .now = page_->now, .behind = page_->behind};
  return Read{.known = known_};
}

void Look::add(const Read& read, Page page) {
  const bool first = !read.now;
  const Snapshot now = first ? page.now : *read.now;
  if (first) {
    const bool nothing = page.rows.empty() && !page.more;
    if (!looks_.empty() && (nothing || looks_.size() >= kMaxLooks)) {
      looks_.back().now = now;
    } else if (!nothing) {
      looks_.push_back({.number = ++last_look_, .now = now});
    }
  }
  std::vector<Row>& rows = page.rows;
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.position < b.position; });
  const Position last = rows.empty() ? read.behind : rows.back().position;
  for (Row& row : rows) {
    ++looks_.back().unsettled;
    enqueue(std::move(row), looks_.back().number);
  }
  if (page.more) {
    page_ = Paging{.now = now, .behind = last};
  } else {
    page_.reset();
    known_ = now;
  }
}

void Look::enqueue(Row row, std::uint64_t look) {
  Queued queued{.row = std::move(row), .look = look, .waits_since = {}};
  const Row& its = queued.row;
  if (look != 0 && held_.contains(its.aggregate)) {
    decide(queued, {.kind = Mark::Kind::hold, .attempts = its.attempts});
    return;
  }
  auto& queue = queues_[its.aggregate];
  if (queue.empty()) ready_.emplace(its.position, its.aggregate);
  queue.push_back(std::move(queued));
  ++undecided_;
}

bool Look::may_ask(const std::string& route, Instant now) const {
  const auto found = routes_.find(route);
  return found == routes_.end() || (now >= found->second.until && found->second.probe == 0);
}

void Look::add_heads(const std::vector<Head>& heads, Instant now) {
  std::set<std::string> asked;  // routes
  std::set<std::string> unwritten;
  for (const Decided& decided : decided_) unwritten.insert(decided.aggregate);
  std::set<std::string> held;
  for (const Head& head : heads) {
    held.insert(head.row.aggregate);
    // A mark that is decided but not written yet does not show in the index.
    const bool known =
        unwritten.contains(head.row.aggregate) || queues_.contains(head.row.aggregate);
    if (!head.due || known || !may_ask(head.row.route, now)) continue;
    if (routes_.contains(head.row.route) && !asked.insert(head.row.route).second) continue;
    enqueue(head.row, 0);
  }
  for (const std::string& aggregate : held_) {
    if (unwritten.contains(aggregate)) held.insert(aggregate);
  }
  held_ = std::move(held);
}

std::vector<std::string> Look::flowing(const std::vector<Head>& heads) const {
  std::vector<std::string> aggregates;
  for (const Head& head : heads) {
    if (!head.due || !head.held || routes_.contains(head.row.route)) continue;
    const auto found = queues_.find(head.row.aggregate);
    if (found == queues_.end() || found->second.size() != 1) continue;
    const Queued& first = found->second.front();
    if (first.look == 0 && first.row.position == head.row.position) {
      aggregates.push_back(head.row.aggregate);
    }
  }
  return aggregates;
}

void Look::add_followers(std::vector<Follower> followers) {
  std::set<std::string> complete;  // aggregates
  for (Follower& follower : followers) {
    const auto found = queues_.find(follower.row.aggregate);
    if (found == queues_.end() || complete.contains(follower.row.aggregate)) continue;
    const Queued& last = found->second.back();
    if (!follower.held) {
      complete.insert(follower.row.aggregate);
    } else if (last.look == 0 && last.row.position < follower.row.position) {
      found->second.push_back({.row = std::move(follower.row), .look = 0, .waits_since = {}});
      ++undecided_;
    }
  }
}

bool Look::route_is_open(const Row& row, Instant now) {
  if (!may_ask(row.route, now)) return false;
  const auto route = routes_.find(row.route);
  if (route != routes_.end()) route->second.probe = row.position;
  return true;
}

Instant Look::gives_up(const Queued& queued, const Backoff& route) const {
  return *queued.waits_since + (route.silent ? Millis(0) : options_.route_wait);
}

std::vector<Row> Look::publish(Window& window, Instant now) {
  std::vector<Row> rows;
  for (auto it = ready_.begin(); it != ready_.end();) {
    Queued& first = queues_.at(it->second).front();
    if (!window.fits(first.row.bytes)) break;
    if (!route_is_open(first.row, now)) {
      if (!first.waits_since) first.waits_since = now;
      ++it;
      continue;
    }
    window.add(first.row.bytes);
    rows.push_back(first.row);
    unconfirmed_.insert(ready_.extract(it++));
  }
  give_up_waiting(now);
  return rows;
}

void Look::give_up_waiting(Instant now) {
  if (routes_.empty()) return;  // the common case: there may be thousands of rows
  for (auto it = ready_.begin(); it != ready_.end();) {
    const std::string aggregate = it->second;
    const Queued first = queues_.at(aggregate).front();
    const auto route = routes_.find(first.row.route);
    if (!first.waits_since || route == routes_.end() || now < gives_up(first, route->second)) {
      ++it;
      continue;
    }
    const auto backoff =
        std::min(std::chrono::ceil<Millis>(route->second.until - now), options_.max_backoff);
    it = ready_.erase(it);
    queues_.at(aggregate).pop_front();
    decide(first, {.kind = Mark::Kind::retry,
                   .attempts = first.row.attempts,
                   .delay = std::max(backoff, options_.route_wait),
                   .error = "a queue behind its routing key is full or does not answer"});
    --undecided_;
    hold_followers(aggregate);
  }
}

void Look::confirm(Position position, PublishOutcome outcome, const std::string& why, Instant now) {
  const auto found = unconfirmed_.find(position);
  if (found == unconfirmed_.end()) return;
  const std::string aggregate = found->second;
  unconfirmed_.erase(found);
  Queued& first = queues_.at(aggregate).front();
  const Blame blame = blame_for(outcome);

  if (const auto route = routes_.find(first.row.route); route != routes_.end()) {
    if (blame == Blame::nobody || blame == Blame::event) {
      routes_.erase(route);
    } else if (blame == Blame::relay && route->second.probe == position) {
      route->second.probe = 0;
    }
  }
  switch (blame) {
    case Blame::nobody: {
      const Queued queued = std::move(first);
      queues_.at(aggregate).pop_front();
      --undecided_;
      decide(queued, {.kind = Mark::Kind::sent, .attempts = queued.row.attempts});
      next_of(aggregate);
      break;
    }
    case Blame::event: {
      const Queued queued = std::move(first);
      queues_.at(aggregate).pop_front();
      --undecided_;
      returned(queued, why);
      break;
    }
    case Blame::route: refused(first, now); [[fallthrough]];
    case Blame::relay: ready_.emplace(position, aggregate); break;
  }
}

void Look::overdue(Position position, const std::string& why) {
  const auto found = unconfirmed_.find(position);
  if (found == unconfirmed_.end()) return;
  const std::string aggregate = found->second;
  unconfirmed_.erase(found);
  const Queued queued = std::move(queues_.at(aggregate).front());
  queues_.at(aggregate).pop_front();
  --undecided_;
  decide(queued, {.kind = Mark::Kind::retry,
                  .attempts = queued.row.attempts,
                  .delay = options_.max_backoff,
                  .error = why});
  hold_followers(aggregate);
}

void Look::taken_late(const Row& row, Instant now) {
  // Published once more meanwhile.
  if (unconfirmed_.contains(row.position)) {
    return confirm(row.position, PublishOutcome::taken, {}, now);
  }
  const auto waiting = ready_.find(row.position);
  if (waiting == ready_.end()) {  // in the retry index, or about to be
    decide({.row = row}, {.kind = Mark::Kind::sent, .attempts = row.attempts});
    return;
  }
  const std::string aggregate = waiting->second;
  ready_.erase(waiting);
  const Queued queued = std::move(queues_.at(aggregate).front());
  queues_.at(aggregate).pop_front();
  --undecided_;
  decide(queued, {.kind = Mark::Kind::sent, .attempts = queued.row.attempts});
  next_of(aggregate);
}

void Look::shut(const std::string& route, Instant until) {
  routes_[route] = {.delay = options_.max_backoff, .until = until, .silent = true};
}

void Look::returned(const Queued& queued, const std::string& why) {
  Mark mark{.kind = Mark::Kind::retry, .attempts = queued.row.attempts + 1, .error = why};
  if (mark.attempts >= options_.max_attempts) {
    mark.kind = Mark::Kind::failed;
    mark.indexed = options_.on_failed == OnFailed::hold;
  } else {
    mark.delay = retry_delay(options_, mark.attempts, queued.row.position);
  }
  const bool holds = mark.kind == Mark::Kind::retry || mark.indexed;
  decide(queued, std::move(mark));
  if (holds) {
    hold_followers(queued.row.aggregate);
  } else {
    next_of(queued.row.aggregate);
  }
}

void Look::refused(Queued& queued, Instant now) {
  if (!queued.waits_since) queued.waits_since = now;
  Backoff& route = routes_[queued.row.route];
  // Several messages were on their way when the queue was full: they are one refusal.
  const bool again = route.probe == queued.row.position;
  if (route.delay != Millis(0) && !again) return;
  route.delay = again ? std::min(route.delay * 2, options_.max_backoff) : options_.first_backoff;
  route.until = now + route.delay;
  route.probe = 0;
}

void Look::decide(const Queued& queued, Mark mark) {
  mark.position = queued.row.position;
  decided_.push_back(
      {.mark = std::move(mark), .aggregate = queued.row.aggregate, .look = queued.look});
}

void Look::hold_followers(const std::string& aggregate) {
  held_.insert(aggregate);
  const auto found = queues_.find(aggregate);
  if (found == queues_.end()) return;
  for (const Queued& queued : found->second) {
    // A row that came from the index is still there.
    if (queued.look != 0) {
      decide(queued, {.kind = Mark::Kind::hold, .attempts = queued.row.attempts});
    }
    --undecided_;
  }
  queues_.erase(found);
}

void Look::next_of(const std::string& aggregate) {
  const auto found = queues_.find(aggregate);
  if (found->second.empty()) {
    queues_.erase(found);
  } else {
    ready_.emplace(found->second.front().row.position, aggregate);
  }
}

Batch Look::batch(std::size_t max_marks) const {
  Batch batch;
  std::map<std::uint64_t, std::size_t> settles;  // by look
  const auto count = std::min(max_marks, decided_.size());
  bool rows = settled_rows_;
  for (std::size_t i = 0; i < count; ++i) {
    batch.marks.push_back(decided_[i].mark);
    ++settles[decided_[i].look];
    rows = rows || decided_[i].look != 0;
  }
  if (!rows) return batch;  // a checkpoint over nothing is not worth a write
  for (const Taken& look : looks_) {
    const bool being_read = page_ && &look == &looks_.back();
    if (being_read || look.unsettled != settles[look.number]) break;
    batch.seen = look.now;
  }
  return batch;
}

void Look::written(const Batch& batch) {
  for (std::size_t i = 0; i < batch.marks.size(); ++i) {
    const std::uint64_t number = decided_.front().look;
    const auto look = std::find_if(looks_.begin(), looks_.end(),
                                   [&](const Taken& taken) { return taken.number == number; });
    if (look != looks_.end()) --look->unsettled;
    settled_rows_ = settled_rows_ || number != 0;
    decided_.pop_front();
  }
  if (batch.seen) settled_rows_ = false;
  while (!looks_.empty() && looks_.front().unsettled == 0 && !(page_ && looks_.size() == 1)) {
    looks_.pop_front();
  }
}

std::optional<Instant> Look::next_ask() const {
  std::optional<Instant> next;
  for (const auto& [name, route] : routes_) {
    if (route.probe == 0) next = std::min(next.value_or(route.until), route.until);
  }
  return next;
}

std::optional<Instant> Look::next_time() const {
  if (ready_.empty() || routes_.empty()) return {};
  std::optional<Instant> next = next_ask();
  const auto earlier = [&](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [position, aggregate] : ready_) {
    const Queued& first = queues_.at(aggregate).front();
    const auto route = routes_.find(first.row.route);
    if (first.waits_since && route != routes_.end()) earlier(gives_up(first, route->second));
  }
  return next;
}

std::string Look::describe() const {
  const auto at = [](Instant instant) {
    return std::to_string(std::chrono::floor<Millis>(instant.time_since_epoch()).count());
  };
  const auto age = [this](std::uint64_t look) {  // the same, however many looks there were before
    return look == 0 ? std::string("i") : std::to_string(last_look_ - look);
  };
  std::string text = "known " + known_.text();
  if (page_) text += " page " + page_->now.text() + ">" + std::to_string(page_->behind);
  for (const Taken& look : looks_) {
    text +=
        " look " + age(look.number) + "=" + look.now.text() + "*" + std::to_string(look.unsettled);
  }
  if (settled_rows_) text += " settled";
  std::set<std::string> aggregates;
  for (const auto& [aggregate, queue] : queues_) aggregates.insert(aggregate);
  for (const std::string& aggregate : aggregates) {
    text += " " + aggregate + "[";
    for (const Queued& queued : queues_.at(aggregate)) {
      text += " " + std::to_string(queued.row.position) + "/" + age(queued.look) + "+" +
              std::to_string(queued.row.attempts);
      if (queued.waits_since) text += "@" + at(*queued.waits_since);
    }
    text += " ]";
  }
  for (const auto& [position, aggregate] : unconfirmed_) text += " ?" + std::to_string(position);
  for (const auto& aggregate : held_) text += " held " + aggregate;
  for (const auto& [route, backoff] : routes_) {
    text += " route " + route + " " + std::to_string(backoff.delay.count()) + "@" +
            at(backoff.until) + "?" + std::to_string(backoff.probe) + (backoff.silent ? "!" : "");
  }
  for (const Decided& decided : decided_) {
    text += " mark " + std::to_string(static_cast<int>(decided.mark.kind)) + ":" +
            std::to_string(decided.mark.position) + "/" + age(decided.look) + "+" +
            std::to_string(decided.mark.attempts);
  }
  return text;
}

}  // namespace baton::relay
