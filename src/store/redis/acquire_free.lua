-- The shortest way to free names, for plain requests of one region, each name once: gives a token
-- each, or 0 where apply.lua has to look; nothing at all if it came too late.
--
-- KEYS  the names, the region's counter, the version of the schema (not in a cluster)
-- ARGV  1 the last microsecond at which this may take effect; 2 a test's clock, or nothing; 3 the
--       clients' version of the schema; 4 microseconds to hold them; 5 milliseconds to keep them;
--       6 and 7 what stands in every holder's value between its time and what is its own, and at
--       the end; then each holder's own
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then return end
if ARGV[2] ~= '' then now = tonumber(ARGV[2]) end
local count = #ARGV - 7
local found = call('MGET', unpack(KEYS, count + 1))
local tokens = {}
local first = tonumber(found[1] or 0)
-- Where a region's counter is to start is not for here.
if first == 0 or (found[2] or '0') ~= ARGV[3] then
  for i = 1, count do tokens[i] = 0 end
  return tokens
end
local pack = struct.pack
local last, keep, ending = first, ARGV[5], ARGV[7]
local times = pack('>BdBd', 203, now, 203, now + ARGV[4]) .. ARGV[6]
for i = 1, count do
  local token = last < now and now or last + 1
  if call('SET', KEYS[i],
          '1\149\145\220\0\016' .. pack('>Bd', 203, token) .. times .. ARGV[i + 7] .. ending, 'NX',
          'PX', keep) then
    tokens[i] = token
    last = token
  else
    tokens[i] = 0
  end
end
if last > first then call('SET', KEYS[count + 1], last) end
return tokens
