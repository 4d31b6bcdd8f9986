// A process that consumes or publishes, for tests that kill and stop it.
//
//   broker_client URL hold QUEUE COUNT [PREFETCH]
//                                               takes COUNT, prints "took", and keeps them; a line
//                                               on standard input makes it acknowledge them: it
//                                               prints "acked" or "refused: …"
//   broker_client URL consume QUEUE             takes and acknowledges, one line "got BODY" each
//   broker_client URL publish EXCHANGE KEY N    publishes N messages KEY-1 … KEY-N in batches of
//                                               100, one line "published KEY" in the end
//
// Ends when its standard input does.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "baton/broker.h"

namespace {

using baton::BootClock;
using baton::Millis;

baton::Deadline in(Millis time) { return BootClock::now() + time; }
baton::Deadline soon() { return in(Millis(30'000)); }

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

std::vector<baton::Settlement> acks(const std::vector<baton::Delivery>& deliveries) {
  std::vector<baton::Settlement> all;
  for (const auto& delivery : deliveries) all.push_back({delivery.tag, baton::Settle::ack});
  return all;
}

void hold(baton::Broker& broker, const std::string& queue, std::size_t count,
          std::size_t prefetch) {
  auto subscription = broker.subscribe(queue, {.prefetch = prefetch}, soon()).value();
  std::vector<baton::Delivery> held;
  while (held.size() < count) {
    auto deliveries = subscription->take(count - held.size(), soon()).value();
    for (auto& delivery : deliveries) {
      held.push_back(std::move(delivery));
    }
  }
  say("took");
  std::string line;
  if (!std::getline(std::cin, line)) return;
  const auto settled = subscription->settle(acks(held), soon());
  say(settled ? "acked" : "refused: " + settled.error().message);
  std::getline(std::cin, line);
}

void consume(baton::Broker& broker, const std::string& queue) {
  auto subscription = broker.subscribe(queue, {.prefetch = 16}, soon()).value();
  say("ready");
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    ended = true;
  });
  while (!ended) {
    const auto deliveries = subscription->take(16, in(Millis(200))).value();
    if (deliveries.empty()) continue;
    subscription->settle(acks(deliveries), soon()).value();
    std::string lines;
    for (const auto& delivery : deliveries) lines += "got " + delivery.message.body + "\n";
    lines.pop_back();
    say(lines);
  }
  reader.join();
}

void publish(baton::Broker& broker, const std::string& exchange, const std::string& key,
             int count) {
  auto publisher = broker.publisher().value();
  for (int next = 1; next <= count;) {
    std::vector<baton::Message> batch;
    for (; next <= count && batch.size() < 100; ++next) {
      batch.push_back(
          {.exchange = exchange, .routing_key = key, .body = key + "-" + std::to_string(next)});
    }
    publisher->publish(batch, soon()).value();
    std::size_t confirmed = 0;
    while (confirmed < batch.size()) {
      auto confirms = publisher->confirms(soon()).value();
      for (const auto& confirm : confirms) {
        if (confirm.outcome != baton::PublishOutcome::taken) throw std::runtime_error(confirm.why);
        ++confirmed;
      }
    }
  }
  say("published " + key);
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 4) throw std::runtime_error("see the top of broker_client.cc");
  auto broker = baton::Broker::open(words[1]).value();
  if (words[2] == "hold") {
    const std::size_t count = std::stoul(words.at(4));
    hold(*broker, words[3], count, words.size() > 5 ? std::stoul(words[5]) : count);
  } else if (words[2] == "consume") {
    consume(*broker, words[3]);
  } else {
    publish(*broker, words[3], words.at(4), std::stoi(words.at(5)));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, argv + argc});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "broker_client: %s\n", problem.what());
    return 1;
  }
}
