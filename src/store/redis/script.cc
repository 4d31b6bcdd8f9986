#include "store/redis/script.h"

#include "store/redis/apply.lua.h"
#include "store/redis/redis_error.h"
#include "store/redis/settle.lua.h"
#include "store/redis/state.lua.h"
#include "store/redis/verbs.lua.h"
#include "store/redis/verbs_more.lua.h"

namespace baton::store::redis {

const std::string& apply_script() {
  namespace lua = embedded::store_redis;
  static const std::string script = "local function baton_long_way(batch)\n" +
                                    std::string(lua::state_lua) + std::string(lua::settle_lua) +
                                    std::string(lua::verbs_lua) + std::string(lua::verbs_more_lua) +
                                    "\nend\n" + std::string(lua::apply_lua);
  return script;
}

Result<void> ScriptName::load(Connection& connection, const Settings& settings, Deadline deadline) {
  auto loaded = connection.ask({"SCRIPT", "LOAD", apply_script()}, deadline);
  if (!loaded) {
    loaded.error().in_doubt = false;
    return loaded.error();
  }
  if (loaded->kind != Value::Kind::text) {
    Error error = error_for(loaded->text, settings);
    error.in_doubt = false;
    return error;
  }
  const std::lock_guard lock(mutex_);
  sha_ = loaded->text;
  return {};
}

}  // namespace baton::store::redis
