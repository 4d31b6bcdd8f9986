#pragma once

#include <memory>
#include <string_view>

#include "baton/broker.h"

namespace baton::broker {

[[nodiscard]] BATON_EXPORT Result<std::shared_ptr<Broker>> make_rabbitmq_broker(
    std::string_view url);

}  // namespace baton::broker
