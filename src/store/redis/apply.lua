-- Answers a batch of requests. Every key is read first and written last, so that whatever goes
-- wrong on the way leaves everything as it was.
--
-- KEYS  the version of the schema (not in a cluster, where it is in another slot), the token
--       counter of each region, the names
-- ARGV  1 the last microsecond at which this may take effect; 2 a test's clock, or nothing;
--       3 the batch: [number of version keys, of regions, region of each key or false, the key of
--       the schema's own name or false, requests]; 4 what stands before a channel; 5 where the
--       floor of new regions is, or nothing
--
-- Gives the server's time, the batch's, and a reply a request; no reply if it came too late.
--
-- The value of a name is a digit and a MessagePack array: holders, waiters, tombstones, ordinal,
-- text. With the digit 1 there is just one plain holder, and what counts stands at fixed places:
--   token 8, since 17, expires 26, ttl 35, at_least_for 44 (doubles), grant 53 to 68, mode 69

local time = redis.call('TIME')
local real = time[1] * 1000000 + time[2]
local pack, sub, double = struct.pack, string.sub, struct.unpack
if real > tonumber(ARGV[1]) then return pack('>Bd', 203, real) end

local now = ARGV[2] == '' and real or tonumber(ARGV[2])
local order = cmsgpack.unpack(ARGV[3])
local version_keys, regions, region_of = order[1], order[2], order[3]
local raw = redis.call('MGET', unpack(KEYS))
local batch = {
  now = now, raw = raw, long = {}, wakes = {}, foreign = {}, ends = {}, schema_at = order[4],
  version = version_keys > 0 and raw[1] or '0'
}

-- What is not a string looks like nothing to MGET, and must not be overwritten.
local absent = {}
for n = version_keys + regions + 1, #KEYS do
  if not raw[n] then absent[#absent + 1] = KEYS[n] end
end
if absent[1] and redis.call('EXISTS', unpack(absent)) > 0 then
  for n = version_keys + regions + 1, #KEYS do
    batch.foreign[n] = not raw[n] and redis.call('EXISTS', KEYS[n]) > 0
  end
end

-- Tokens and turns: one counter a region, above the microseconds since 1970 and above all before.
-- Lua's numbers are whole up to 2^53, and then they repeat. So a region whose counter comes near
-- 2^52 gives no more; the room left is for what one request draws.
local SPENT = 4503599626321920  -- 2^52 - 2^20
local last, drawn = {}, {}
local function counter(region)
  if last[region] then return last[region] end
  local value = raw[version_keys + region]
  if not value and ARGV[5] ~= '' then value = redis.call('GET', ARGV[5]) end
  last[region] = tonumber(value or 0) or SPENT
  return last[region]
end
local function draw(region, above)
  local token = math.max(counter(region) + 1, now, above)
  last[region] = token
  drawn[region] = true
  return token
end
function batch.next(n) return draw(region_of and region_of[n] or 1, 0) end
function batch.spent(n)
  return not (math.max(counter(region_of and region_of[n] or 1), now) < SPENT)  -- nor NaN
end
-- The same in all queues of a request, and above all that these queues have seen.
function batch.turn(states)
  local turn = 0
  for _ = 1, 2 do
    for _, state in ipairs(states) do
      local region = region_of and region_of[state.n] or 1
      if turn == 0 or last[region] ~= turn then turn = draw(region, turn) end
    end
  end
  return turn
end

function batch.sole(token, since, expires, ttl, at_least, grant, mode, rest)
  return '1\149\145\220\0\016' ..
         pack('>BdBdBdBdBd', 203, token, 203, since, 203, expires, 203, ttl, 203, at_least) ..
         '\176' .. grant .. string.char(mode, 0, 194) .. rest .. '\144\144\1610\160'
end

local ends = batch.ends  -- of what the fast paths have written, when it may be forgotten

local function take_free(n, r)
  local token = batch.next(n)
  ends[n] = now + math.max(r[8], r[9]) * 1000
  raw[n] = batch.sole(token, now, ends[n], r[8], r[9], r[2], r[4], r[11])
  return '\146\0' .. pack('>Bd', 203, token)
end

local function renew_sole(n, value)
  ends[n] = math.max(double('>d', value, 26), now + double('>d', value, 35) * 1000)
  raw[n] = sub(value, 1, 25) .. pack('>d', ends[n]) .. sub(value, 34)
  return '\146\0' .. sub(value, 7, 15)
end

-- What one look at the name's value decides; else nothing. Position 10 (4 in renew and release)
-- says that the request is a plain one.
local function short_way(r)
  local n = r[3]
  if type(n) ~= 'number' or batch.long[n] or batch.foreign[n] then return end
  local value = raw[n]
  if r[1] == 0 then
    if not value and r[10] and r[5] == batch.version and not batch.spent(n) then
      return take_free(n, r)
    end
  elseif value and (r[1] == 2 or r[1] == 4) and r[4] and string.byte(value, 1) == 49 and
         sub(value, 53, 68) == r[2] and double('>d', value, 26) > now then
    if r[1] == 2 then return renew_sole(n, value) end
    if double('>d', value, 17) + double('>d', value, 44) * 1000 <= now then
      raw[n], ends[n] = false, 0
      return '\145\007'
    end
  end
end

local long_way, each_changed
local answers = {}
local asks_for_more = false  -- some request is an acquire
for i, r in ipairs(order[5]) do
  asks_for_more = asks_for_more or r[1] == 0
  local answer = short_way(r)
  if not answer then
    if not long_way then long_way, each_changed = baton_long_way(batch) end
    local fine, made = pcall(long_way, r)
    -- These are found out before the request has changed anything.
    if not fine and made ~= 'WRONGTYPE' and made ~= 'BADVALUE' and made ~= 'NOTOKENS' then
      error(made)
    end
    answer = fine and made or '\146\009' .. cmsgpack.pack(made)
  end
  answers[i] = answer
end

-- Until all that it says has ended; the server's clock for keys may be a moment behind. In tests
-- time may stand still.
local KEPT = ARGV[2] == '' and 10 or 600000
-- A server at maxmemory refuses SET, but only as the first write of a script. What keeps or ends a
-- grant that is there needs no new memory, so it begins with a write that never needs any.
local function set(key, ...)
  local refusal = redis.pcall('SET', key, ...).err
  if not refusal then return end
  if not asks_for_more and string.find(refusal, 'OOM', 1, true) then
    redis.call('PEXPIREAT', key, string.format('%.0f', real / 1000 + 86400000))
  end
  redis.call('SET', key, ...)
end
local function write(n, value, until_us)
  if n == batch.schema_at then set(KEYS[1], batch.version) end
  if not value then
    redis.call('DEL', KEYS[n])
  elseif until_us then
    set(KEYS[n], value, 'PX', math.ceil((until_us - now) / 1000) + KEPT)
  else
    set(KEYS[n], value)
  end
end
for n, until_us in pairs(ends) do
  if not batch.long[n] then write(n, raw[n], until_us) end
end
if each_changed then each_changed(write) end
for region in pairs(drawn) do set(KEYS[version_keys + region], last[region]) end
for _, wake in ipairs(batch.wakes) do
  if wake[1] ~= '' then redis.pcall('PUBLISH', ARGV[4] .. wake[1], wake[2]) end
end
return pack('>BdBd', 203, real, 203, now) .. table.concat(answers)
