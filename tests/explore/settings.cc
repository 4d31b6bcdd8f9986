#include "explore/explorer.h"

namespace baton::explore {
namespace {

const std::string kA = "DEFAULT:a";
const std::string kB = "DEFAULT:b";

Order order(std::vector<Target> targets, bool wait) { return {std::move(targets), wait}; }

}  // namespace

std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  const Order try_x = order({{kA, Mode::X}}, false);
  const Order wait_x = order({{kA, Mode::X}}, true);
  const Order wait_s = order({{kA, Mode::S}}, true);

  Setting late;
  late.title = "2 clients, 1 name, try and wait, late messages";
  late.orders = {try_x, wait_x};
  late.acquisitions = 1;
  late.ttl = 3;
  late.live_every = 8;
  all.push_back(late);

  Setting again;
  again.title = "2 clients, 1 name, waiting, twice each";
  again.orders = {wait_x};
  again.in_flight = 1;
  again.live_every = 8;
  all.push_back(again);

  Setting names;
  names.title = "2 clients, 2 names and both at once, waiting";
  names.names = {kA, kB};
  names.orders = {wait_x, order({{kB, Mode::X}}, true),
                  order({{kA, Mode::X}, {kB, Mode::X}}, true)};
  names.acquisitions = 1;
  names.in_flight = 1;
  names.live_every = 4;
  all.push_back(names);

  Setting converting;
  converting.title = "2 clients, 1 name, shared, converting to exclusive";
  converting.orders = {wait_s};
  converting.may_convert = true;
  converting.acquisitions = 1;
  converting.in_flight = 1;
  converting.ttl = 3;
  converting.live_every = 4;
  all.push_back(converting);

  Setting clocks;
  clocks.title = "2 clients, 1 name, waiting, clocks slow and fast";
  clocks.orders = {wait_x};
  clocks.acquisitions = 1;
  clocks.in_flight = 1;
  clocks.ttl = 3;
  clocks.slip_every = clocks.ttl;
  clocks.live_every = 4;
  all.push_back(clocks);

  // Three clients are many: what is sent arrives within its tick or not at all, and one fault in a
  // run must do.
  Setting shared;
  shared.title = "3 clients, 1 name, shared and exclusive, 1 fault";
  shared.clients = 3;
  shared.orders = {wait_s, wait_x};
  shared.acquisitions = 1;
  shared.in_flight = 1;
  shared.faults = 1;
  shared.ttl = 2;
  shared.queue_ttl = 1;
  shared.life = 1;
  shared.live_every = 16;
  all.push_back(shared);

  return all;
}

Setting large_world() {
  Setting large;
  large.title = "3 clients, 2 names, everything at once, walks";
  large.clients = 3;
  large.names = {kA, kB};
  for (const bool wait : {false, true}) {
    large.orders.push_back(order({{kA, Mode::X}}, wait));
    large.orders.push_back(order({{kA, Mode::S}}, wait));
    large.orders.push_back(order({{kA, Mode::U}, {kB, Mode::IX}}, wait));
    large.orders.push_back(order({{kB, Mode::S}, {kA, Mode::S}}, wait));
  }
  large.acquisitions = 4;
  large.in_flight = 3;
  large.life = 3;
  large.slip_every = large.ttl;
  large.may_convert = true;
  large.max_states = 5'000'000;
  return large;
}

Setting clocks_beyond_the_margin() {
  Setting setting;
  setting.title = "2 clients, 1 name, exclusive, clocks beyond the margin";
  setting.orders = {order({{kA, Mode::X}}, true)};
  setting.acquisitions = 1;
  setting.slip_every = setting.ttl - 1;
  return setting;
}

}  // namespace baton::explore
