-- The shortest way to end plain grants that are alone on their names, each name once. Gives the
-- places of the names that apply.lua has to look at, or 0 if there are none. A name's key ends with
-- the last of its grants, so what is there is held; and a grant that somebody gave up may end late,
-- for it is nobody else's.
--
-- KEYS  the names
-- ARGV  1 a test's clock, at which keys do not end, or nothing; then what a value says from its
--       at_least_for, which is nothing, to its grant
local sub, byte, keys, own = string.sub, string.byte, KEYS, ARGV
local found = redis.call('MGET', unpack(keys))
local clock = tonumber(own[1])
local over, left = keys, nil
for i = 1, #keys do
  local value = found[i]
  if value and byte(value) == 49 and sub(value, 44, 68) == own[i + 1] and
     not (clock and struct.unpack('>d', value, 26) <= clock) then
    if left then over[#over + 1] = keys[i] end
  else
    if not left then over, left = {unpack(keys, 1, i - 1)}, {} end
    left[#left + 1] = i
  end
end
if over[1] then redis.call('DEL', unpack(over)) end
return left or 0
