-- A fence for data in Redis, wherever the locks are. Put this function before your own script, and
-- call it first:
--
--   local newer = baton_fence(KEYS[1], ARGV[1], ARGV[2])
--   if newer then return redis.error_reply('FENCED overtaken by token ' .. newer) end
--   redis.call('SET', KEYS[2], …)
--
-- `key` is a key of the fence's own, one a lock name ('baton_fence:' and $BATON_NAME, say; in a
-- cluster with the hash tag of your data), `mode` is 'X', 'S', …, `token` the lease's, as a string.
-- It remembers the highest token seen of each mode. Gives nothing: go on; or the token of somebody
-- newer who cannot have held the lock beside this one: write nothing.
--
-- `lock_key` may name the lock itself, if it is in the same database: then a newer grant counts even
-- if its holder has not written yet. With `only_look` nothing is recorded.
local function baton_fence(key, mode, token, lock_key, only_look)
  local clashes = {
    IS = 'X', IX = 'S U SIX X', S = 'IX SIX X', U = 'IX U SIX X', SIX = 'IX S U SIX X',
    X = 'IS IX S U SIX X'
  }
  token = tostring(token)
  if not clashes[mode] then error('unknown lock mode') end
  if not string.match(token, '^[1-9]%d*$') then error('a token is a number above zero') end
  -- Tokens are 64 bits wide and Lua's numbers are not: digits they stay.
  local function above(a, b)
    if #a ~= #b then return #a > #b end
    return a > b
  end
  local newest = token
  local function look_at(other)
    if other and above(other, newest) then newest = other end
  end
  for other in string.gmatch(clashes[mode], '%u+') do look_at(redis.call('HGET', key, other)) end
  local lock = lock_key and redis.call('GET', lock_key)
  if lock then
    local names = {[0] = 'IS', 'IX', 'S', 'U', 'SIX', 'X'}
    for _, holder in ipairs(cmsgpack.unpack(string.sub(lock, 2))[1]) do
      local held = names[holder[7]]
      for other in string.gmatch(clashes[mode], '%u+') do
        if other == held then look_at(string.format('%.0f', holder[1])) end
      end
    end
  end
  if newest ~= token then return newest end
  local before = redis.call('HGET', key, mode)
  if not only_look and (not before or above(token, before)) then
    redis.call('HSET', key, mode, token)
  end
end
