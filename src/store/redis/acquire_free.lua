-- The fast path to free names, for plain requests of one region, each name once. Gives the token
-- of the first name; the others have those that follow, each by its place. If some were not free,
-- it gives a list: that token, or 0 if it could give none, and the places of the names that
-- apply.lua has to look at. Gives nothing at all if it came too late.
--
-- KEYS  the names, the region's counter, the version of the schema (not in a cluster)
-- ARGV  1 the clients' version of the schema; 2 milliseconds to keep the names; 3 numbers, packed,
--       for each word more costs the server a third of a call: the last microsecond at which this
--       may take effect, a test's clock or -1, microseconds to hold the names, how many they are;
--       then what stands in each holder's value after its times; and if they have in common what
--       comes before and after each one's own, these two
local call, keys, own, pack = redis.call, KEYS, ARGV, struct.pack
local not_after, clock, hold, count = struct.unpack('>dddd', own[3])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now > not_after then return end
local real = now
if clock >= 0 then now = clock end
local counter, schema, keep = keys[count + 1], keys[count + 2], own[2]
local last = tonumber(call('GET', counter) or 0) or 0
-- Where a region's counter is to start is not for here.
if last == 0 or (schema and call('GET', schema) or '0') ~= own[1] then return {0} end
local first = last < now and now or last + 1
-- Near 2^52 apply.lua says what is wrong.
if not (first + count < 4503599626321920) then return {0} end
local start, shape = '1\149\145\220\0\016', '>BdBdBd'
if count == 1 then
  local value = start .. pack(shape, 203, first, 203, now, 203, now + hold) .. own[4]
  if not call('SET', keys[1], value, 'NX', 'PX', keep) then return {first, 1} end
  call('SET', counter, string.format('%d', first))  -- to write a number itself is dearer
  return first
end
local before, after = own[count + 4] or '', own[count + 5] or ''
local values = {}  -- by name
for i = 1, count do
  values[2 * i - 1] = keys[i]
  values[2 * i] = start .. pack(shape, 203, first + i - 1, 203, now, 203, now + hold) .. before ..
                  own[i + 3] .. after
end
local left
-- SET answers OK, which is dearer to read than a number: for many it is not the cheapest.
if call('MSETNX', unpack(values)) == 1 then
  local ends = string.format('%.0f', real / 1000 + keep)
  for i = 1, count do call('PEXPIREAT', keys[i], ends) end
else
  for i = 1, count do
    if not call('SET', keys[i], values[2 * i], 'NX', 'PX', keep) then
      left = left or {first}
      left[#left + 1] = i
    end
  end
end
if not left or #left <= count then call('SET', counter, string.format('%d', first + count - 1)) end
return left or first
