-- The shortest way to free names, for plain requests of one region, each name once. Gives the first
-- token, or 0 if it could give none; then the places of the names that apply.lua has to look at.
-- The others have the first token and those that follow it, in their order. Gives nothing at all if
-- it came too late.
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
if own[2] ~= '' then now = tonumber(own[2]) end
local count = #own - 7
local found = call('MGET', unpack(keys, count + 1))
local last = tonumber(found[1] or 0)
-- Where a region's counter is to start is not for here.
if last == 0 or (found[2] or '0') ~= own[3] then return {0} end
local first = last < now and now or last + 1
local token, left = first, {first}
local pack, keep, ending = struct.pack, own[5], own[7]
local times = pack('>BdBd', 203, now, 203, now + own[4]) .. own[6]
for i = 1, count do
  if call('SET', keys[i],
          '1\149\145\220\0\016' .. pack('>Bd', 203, token) .. times .. own[i + 7] .. ending, 'NX',
          'PX', keep) then
    token = token + 1
  else
    left[#left + 1] = i
  end
end
if token > first then call('SET', keys[count + 1], token - 1) end
return left
