-- The shortest way to end plain grants that are alone on their names, each name once: gives 1 each,
-- or 0 where apply.lua has to look; nothing at all if it came too late.
--
-- KEYS  the names
-- ARGV  1 and 2 as in acquire_free.lua, then the grants
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then return end
if ARGV[2] ~= '' then now = tonumber(ARGV[2]) end
local found = redis.call('MGET', unpack(KEYS))
local ended, over = {}, {}
for i, key in ipairs(KEYS) do
  local value = found[i]
  ended[i] = 0
  if value and string.byte(value, 1) == 49 and string.sub(value, 53, 68) == ARGV[i + 2] then
    local since, _, expires, _, _, _, at_least = struct.unpack('>dBdBdBd', value, 17)
    if expires > now and since + at_least * 1000 <= now then
      ended[i] = 1
      over[#over + 1] = key
    end
  end
end
if over[1] then redis.call('DEL', unpack(over)) end
return ended
