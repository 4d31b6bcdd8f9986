-- The shortest way to end plain grants that are alone on their names, each name once: gives 1 each,
-- or 0 where apply.lua has to look. A name's key ends with the last of its grants, so what is there
-- is held; and a grant that somebody gave up may end late, for it is nobody else's.
--
-- KEYS  the names
-- ARGV  1 a test's clock, at which keys do not end, or nothing; then what a value says from its
--       at_least_for, which is nothing, to its grant
local sub = string.sub
local found = redis.call('MGET', unpack(KEYS))
local clock = tonumber(ARGV[1])
local ended, over = {}, {}
for i, key in ipairs(KEYS) do
  local value = found[i]
  ended[i] = 0
  if value and string.byte(value, 1) == 49 and sub(value, 44, 68) == ARGV[i + 1] and
     not (clock and struct.unpack('>d', value, 26) <= clock) then
    ended[i] = 1
    over[#over + 1] = key
  end
end
if over[1] then redis.call('DEL', unpack(over)) end
return ended
