-- The shortest way to free names, for plain requests of one region, each name once. Gives the token
-- of the first name; the others have those that follow, each by its place. If some were not free,
-- it gives a list: that token, or 0 if it could give none, and the places of the names that
-- apply.lua has to look at. Gives nothing at all if it came too late.
--
-- KEYS  the names, the region's counter, the version of the schema (not in a cluster)
-- ARGV  1 the last microsecond at which this may take effect; 2 a test's clock, or nothing; 3 the
--       clients' version of the schema; 4 microseconds to hold them; 5 milliseconds to keep them;
--       6 and 7 what stands in every holder's value between its time and what is its own, and at
--       the end; then each holder's own
local call, keys, own = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(own[1]) then return end
local real = now
if own[2] ~= '' then now = tonumber(own[2]) end
local count = #own - 7
local found = call('MGET', unpack(keys, count + 1))
local last = tonumber(found[1] or 0)
-- Where a region's counter is to start is not for here.
if last == 0 or (found[2] or '0') ~= own[3] then return {0} end
local first = last < now and now or last + 1
local pack, keep, ending = struct.pack, own[5], own[7]
local times = pack('>BdBd', 203, now, 203, now + own[4]) .. own[6]
local values = {}  -- by name
for i = 1, count do
  values[2 * i - 1] = keys[i]
  values[2 * i] = '1\149\145\220\0\016' .. pack('>Bd', 203, first + i - 1) .. times ..
                  own[i + 7] .. ending
end
local left
-- SET answers OK, which is dearer to read than a number: for many it is not the cheapest.
if count > 1 and call('MSETNX', unpack(values)) == 1 then
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
if not left or #left <= count then call('SET', keys[count + 1], first + count - 1) end
return left or first
