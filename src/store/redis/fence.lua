-- A fence for data in Redis, wherever the locks are. Put these functions before your own script, and
-- call one of them first:
--
--   local newer = baton_fence_lease(ARGV[1])                 -- $BATON_FENCE
--   if newer then return redis.error_reply('FENCED overtaken by token ' .. newer) end
--   redis.call('SET', KEYS[1], …)
--
-- They remember the highest token seen of each mode of each name, in a hash 'baton_fence:' .. name.
-- They give nothing: go on; or the token of somebody newer who cannot have held the lock beside this
-- holder: write nothing. Then nothing is recorded, of no name.

-- asks: a list of {key, mode, token as a string, lock key or nothing}. With a lock key, a newer grant
-- counts even if its holder has not written yet. With `only_look` nothing is recorded.
local function baton_fence_all(asks, only_look)
  local clashes = {
    IS = 'X', IX = 'S U SIX X', S = 'IX SIX X', U = 'IX U SIX X', SIX = 'IX S U SIX X',
    X = 'IS IX S U SIX X'
  }
  -- Tokens are 64 bits wide and Lua's numbers are not: digits they stay.
  local function above(a, b)
    if #a ~= #b then return #a > #b end
    return a > b
  end
  local newest
  local function look_at(other, token)
    if other and above(other, token) and not (newest and above(newest, other)) then
      newest = other
    end
  end
  for _, ask in ipairs(asks) do
    local key, mode, token = ask[1], ask[2], ask[3]
    if key == '' or key == 'baton_fence:' or string.find(key, '%z') then
      error('a fence takes a name')
    end
    if not clashes[mode] then error('unknown lock mode') end
    if not string.match(token, '^[1-9]%d*$') or above(token, '4611686018427387904') then
      error('a token is a number above zero and at most 4611686018427387904')
    end
    for other in string.gmatch(clashes[mode], '%u+') do
      look_at(redis.call('HGET', key, other), token)
      for _, beside in ipairs(asks) do
        if beside[1] == key and beside[2] == other then look_at(beside[3], token) end
      end
    end
    local lock = ask[4] and redis.call('GET', ask[4])
    if lock then
      local names = {[0] = 'IS', 'IX', 'S', 'U', 'SIX', 'X'}
      for _, holder in ipairs(cmsgpack.unpack(string.sub(lock, 2))[1]) do
        local held = names[holder[7]]
        for other in string.gmatch(clashes[mode], '%u+') do
          if other == held then look_at(string.format('%.0f', holder[1]), token) end
        end
      end
    end
  end
  if newest then return newest end
  if only_look then return end
  for _, ask in ipairs(asks) do
    local before = redis.call('HGET', ask[1], ask[2])
    if not before or above(ask[3], before) then redis.call('HSET', ask[1], ask[2], ask[3]) end
  end
end

-- One name: `key` is a key of the fence's own, 'baton_fence:' and $BATON_NAME.
local function baton_fence(key, mode, token, lock_key)
  return baton_fence_all({{key, mode, tostring(token), lock_key}})
end

-- All names and ancestors of a lease, as in $BATON_FENCE. `keys` are those of the fence, one for
-- each entry in its order: in a cluster they are needed, all with the hash tag of your data.
local function baton_fence_lease(lease, keys)
  local asks = {}
  for i, entry in ipairs(cjson.decode(lease)) do
    local token = entry.token
    -- Above this a number may have been rounded; and a fraction would be.
    if type(token) == 'number' and token < 9007199254740992 and token % 1 == 0 then
      token = string.format('%.0f', token)
    end
    if type(entry.name) ~= 'string' or type(token) ~= 'string' then error('not a lease') end
    if #entry.name < 1 or #entry.name > 1024 then error('a fence takes a name') end
    asks[i] = {keys and keys[i] or 'baton_fence:' .. entry.name, entry.mode, token}
  end
  if #asks == 0 or #asks > 1024 then error('not a lease') end
  return baton_fence_all(asks)
end
