#include "store/redis/script.h"

#include "store/redis/acquire_free.lua.h"
#include "store/redis/apply.lua.h"
#include "store/redis/redis_error.h"
#include "store/redis/release_held.lua.h"
#include "store/redis/settle.lua.h"
#include "store/redis/state.lua.h"
#include "store/redis/verbs.lua.h"
#include "store/redis/verbs_more.lua.h"

namespace baton::store::redis {
namespace {

namespace lua = embedded::store_redis;

// The long way is one function that apply.lua calls if it must: to make all of its functions costs
// more than a fast path does.
const std::string& apply_script() {
  static const std::string script = "local function baton_long_way(batch)\n" +
                                    std::string(lua::state_lua) + std::string(lua::settle_lua) +
                                    std::string(lua::verbs_lua) + std::string(lua::verbs_more_lua) +
                                    "\nend\n" + std::string(lua::apply_lua);
  return script;
}

}  // namespace

Result<void> Scripts::load(Connection& connection, const Settings& settings, Deadline deadline) {
  Commands commands;
  for (const std::string_view script :
       {std::string_view(apply_script()), lua::acquire_free_lua, lua::release_held_lua}) {
    commands.add({"SCRIPT", "LOAD", script});
  }
  auto loaded = connection.exchange(commands, deadline);
  if (!loaded) {
    loaded.error().in_doubt = false;
    return loaded.error();
  }
  for (const Value& value : *loaded) {
    if (value.kind == Value::Kind::text) continue;
    Error error = error_for(value.text, settings);
    error.in_doubt = false;
    return error;
  }
  if (!names_[0].empty()) return {};
  for (std::size_t i = 0; i < names_.size(); ++i) names_[i] = std::move((*loaded)[i].text);
  return {};
}

}  // namespace baton::store::redis
