-- Deletes a value that was found to be damaged, if it is still the same: ARGV[1] if ARGV[2] is
-- 'string', else anything that is no string.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' or (ARGV[2] == 'string') ~= (kind == 'string') then return 0 end
if kind == 'string' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
