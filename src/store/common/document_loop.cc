#include "store/common/document_loop.h"

#include <algorithm>
#include <set>
#include <thread>

#include "core/backoff.h"
#include "store/common/jitter_bits.h"

namespace baton::store {
namespace {

bool schema_matters(Verb verb) {
  return verb == Verb::acquire || verb == Verb::claim || verb == Verb::convert;
}

Reply reply_of(Outcome outcome, std::string message) {
  Reply reply;
  reply.outcome = outcome;
  reply.message = std::move(message);
  return reply;
}

Group group_of(std::span<const Request> batch, const std::vector<std::size_t>& chosen) {
  Group group;
  std::set<std::string> keys;
  for (const std::size_t index : chosen) {
    const Request& request = batch[index];
    group.requests.push_back(&request);
    for (const Target& target : request.targets) keys.insert(target.key);
    if (schema_matters(request.verb)) keys.insert(std::string(core::kSchemaKey));
  }
  group.keys.assign(keys.begin(), keys.end());
  return group;
}

std::optional<std::string> damaged(const Request& request, const Snapshot& found) {
  for (const Target& target : request.targets) {
    const auto it = found.documents.find(target.key);
    if (it == found.documents.end() || it->second.damage.empty()) continue;
    return "what the store knows of '" + target.key + "' is " + it->second.damage;
  }
  return std::nullopt;
}

// The core on copies of what was found.
Result<Step> applied(const Group& group, const Snapshot& found) {
  Step step{group, found, {}, {}, {}, false};
  core::LockTable table;
  const std::uint64_t base = found.base == 0 ? kPending : found.base;
  table.last = base;
  core::Effects effects;
  for (const auto& [key, document] : found.documents) {
    if (!document.damage.empty()) {
      if (key != core::kSchemaKey) continue;
      return Error{.code = Code::bad_store, .message = "the lock schema is " + document.damage};
    }
    table.names.emplace(key, document.state);
  }
  std::set<std::string> dirty;
  for (const Request* request : group.requests) {
    if (auto damage = damaged(*request, found)) {
      step.replies.push_back(reply_of(Outcome::denied, std::move(*damage)));
      continue;
    }
    step.replies.push_back(core::apply(table, *request, found.now, effects));
    for (const Target& target : request->targets) {
      const auto it = table.names.find(target.key);
      if (it == table.names.end() || !it->second.dirty) continue;
      dirty.insert(target.key);
      it->second.dirty = false;  // to the core it means: by this request
    }
  }
  if (table.last - base >= kDraws) {
    return Error{.code = Code::unsupported, .message = "too many waiters for this store"};
  }
  for (auto& [key, state] : table.names) {
    state.dirty = dirty.contains(key);
    step.states.emplace(key, std::move(state));
  }
  step.wakes = std::move(effects.wakes);
  step.drew = table.last != base;
  return step;
}

void resolve_reply(Reply& reply, std::uint64_t version) {
  for (Token& token : reply.tokens) token = resolved(token, version);
  for (HolderInfo& holder : reply.holders) holder.token = resolved(holder.token, version);
  if (!reply.info) return;
  for (HolderInfo& holder : reply.info->holders) holder.token = resolved(holder.token, version);
}

using Parts = std::vector<std::vector<std::size_t>>;

// Requests that share names stay together, in the order of the batch; or each goes alone.
Parts split(std::span<const Request> batch, const std::vector<std::size_t>& chosen, bool each) {
  Parts parts;
  std::vector<std::set<std::string>> names;
  for (const std::size_t index : chosen) {
    std::vector<std::size_t> together{index};
    std::set<std::string> keys;
    for (const Target& target : batch[index].targets) keys.insert(target.key);
    for (std::size_t i = parts.size(); i-- > 0 && !each;) {
      const bool shared = std::any_of(keys.begin(), keys.end(),
                                      [&](const auto& key) { return names[i].contains(key); });
      if (!shared) continue;
      together.insert(together.end(), parts[i].begin(), parts[i].end());
      keys.merge(names[i]);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::sort(together.begin(), together.end());
    parts.push_back(std::move(together));
    names.push_back(std::move(keys));
  }
  return parts;
}

Reply too_contended() {
  Reply reply = reply_of(Outcome::busy, "others kept changing this name");
  reply.retry_after = Millis(100);
  return reply;
}

}  // namespace

std::vector<std::string> Step::dirty() const {
  std::vector<std::string> keys;
  for (const auto& [key, state] : states) {
    if (state.dirty) keys.push_back(key);
  }
  return keys;
}

void resolve(core::NameState& state, std::uint64_t version) {
  for (core::Holder& holder : state.holders) holder.token = resolved(holder.token, version);
  for (core::Waiter& waiter : state.waiters) waiter.turn = resolved(waiter.turn, version);
}

struct DocumentLoop::Answers {
  std::span<const Request> batch;
  std::vector<Reply> replies;
  bool any_written = false;

  void fill(const std::vector<std::size_t>& chosen, const Reply& reply) {
    for (const std::size_t index : chosen) replies[index] = reply;
  }
};

// Requests in their order, so many at a time as one write takes. What goes wrong in a later part
// must not hide what an earlier one did: then nothing has happened to the rest, and it may ask
// again.
Result<std::vector<Reply>> DocumentLoop::apply(std::span<const Request> batch, Deadline deadline) {
  Answers answers{batch, std::vector<Reply>(batch.size()), false};
  std::vector<std::size_t> part;
  std::size_t targets = 0;
  const auto finish_part = [&]() -> Result<void> {
    if (part.empty()) return {};
    auto ran = run(part, deadline, answers);
    if (!ran && (ran.error().in_doubt || !answers.any_written)) {
      ran.error().in_doubt = ran.error().in_doubt || answers.any_written;
      return ran;
    }
    if (!ran) answers.fill(part, reply_of(Outcome::busy, ran.error().message));
    part.clear();
    targets = 0;
    return {};
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (auto rule = core::broken_rule(batch[i])) {
      answers.replies[i] = reply_of(Outcome::invalid, std::move(*rule));
      continue;
    }
    const std::size_t size = batch[i].targets.size();
    if (size > limits_.max_set) {
      answers.replies[i] = reply_of(
          Outcome::unsupported,
          "this store takes at most " + std::to_string(limits_.max_set) + " locks in one request");
      continue;
    }
    if (!part.empty() && targets + size > limits_.names_per_write) {
      if (auto finished = finish_part(); !finished) return finished.error();
    }
    part.push_back(i);
    targets += size;
  }
  if (auto finished = finish_part(); !finished) return finished.error();
  return std::move(answers.replies);
}

Result<void> DocumentLoop::run(const std::vector<std::size_t>& chosen, Deadline deadline,
                               Answers& answers) {
  const Group group = group_of(answers.batch, chosen);
  core::Backoff backoff(Millis(2), Millis(100));
  std::optional<Snapshot> found;
  bool may_guess = true;
  int conflicts = 0;
  while (true) {
    if (!found) {
      auto read = documents_.read(group, may_guess, deadline);
      if (!read) return read.error();
      found = std::move(*read);
    }
    auto step = applied(group, *found);
    if (!step) return step.error();
    auto commit = documents_.commit(*step, deadline);
    if (!commit) return commit.error();
    if (commit->end == Commit::End::done) {
      // A document that was removed has no version.
      answers.any_written = answers.any_written || commit->version != 0 || !step->dirty().empty();
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        resolve_reply(step->replies[i], commit->version);
        answers.replies[chosen[i]] = std::move(step->replies[i]);
      }
      return {};
    }
    const bool too_large = commit->end == Commit::End::too_large;
    if (too_large && chosen.size() == 1) {
      answers.fill(chosen,
                   reply_of(Outcome::unsupported, "more than this store can keep in one write"));
      return {};
    }
    const bool one_by_one = too_large || commit->end == Commit::End::no_trace;
    const bool was_guess = found->guessed;
    may_guess = false;
    found = std::move(commit->found);
    if (!one_by_one && (commit->end == Commit::End::unproven || was_guess)) continue;
    // One contended name must not keep the others of its batch from being written.
    if (auto parts = split(answers.batch, chosen, one_by_one); parts.size() > 1) {
      return run_each(parts, deadline, answers);
    }
    if (++conflicts == 1 && found) continue;
    const Millis pause = backoff.next(jitter_bits());
    if (BootClock::now() + pause >= deadline) {
      answers.fill(chosen, too_contended());
      return {};
    }
    std::this_thread::sleep_for(pause);
    found.reset();
  }
}

Result<void> DocumentLoop::run_each(const std::vector<std::vector<std::size_t>>& parts,
                                    Deadline deadline, Answers& answers) {
  for (const auto& part : parts) {
    auto ran = run(part, deadline, answers);
    if (ran) continue;
    if (ran.error().in_doubt || !answers.any_written) return ran;
    answers.fill(part, reply_of(Outcome::busy, ran.error().message));
  }
  return {};
}

}  // namespace baton::store
