#pragma once

#include <memory>
#include <string_view>

#include "baton/broker.h"

namespace baton::broker {

// embedded:PATH[?lease=TIME]: a broker in an SQLite file, for the processes of one machine.
//
// Each publisher and each subscription has a connection of its own. What they do is one write
// transaction a call; nothing is kept in memory that another process would need. A Watcher, one
// thread a broker object, shows others that the consumers run, and wakes them.
[[nodiscard]] BATON_EXPORT Result<std::shared_ptr<Broker>> make_embedded_broker(
    std::string_view url);

}  // namespace baton::broker
