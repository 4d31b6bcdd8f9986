-- The fast path that ends plain grants that are alone on their names, each name once. Gives the
-- places of the names that apply.lua has to look at, or 0 if there are none. A name's key ends with
-- the last of its grants, so what is there is held; and a grant that somebody gave up may end late,
-- for it is nobody else's.
--
-- KEYS  the names
-- ARGV  what each value says from its at_least_for, which is nothing, to its grant; and a test's
--       clock, at which keys do not end, if there is one
local call, keys, own = redis.call, KEYS, ARGV
local clock = own[#keys + 1]
local function is_held(value, i)
  return value and string.byte(value) == 49 and string.sub(value, 44, 68) == own[i] and
         not (clock and struct.unpack('>d', value, 26) <= tonumber(clock))
end
if #keys == 1 then
  if not is_held(call('GET', keys[1]), 1) then return {1} end
  call('DEL', keys[1])
  return 0
end
local found = call('MGET', unpack(keys))
local over, left = keys, nil
for i = 1, #keys do
  if is_held(found[i], i) then
    if left then over[#over + 1] = keys[i] end
  else
    if not left then over, left = {unpack(keys, 1, i - 1)}, {} end
    left[#left + 1] = i
  end
end
if over[1] then call('DEL', unpack(over)) end
return left or 0
