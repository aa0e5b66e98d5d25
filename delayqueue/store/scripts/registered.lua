-- Reads all subscribers or schedules. Changes nothing.
-- requires  _prelude
-- flags  no-writes
-- KEYS  tag, queue name
-- ARGV  kind (subscribers | schedules), revision that is known already ("" = none)
-- returns { revision }, where that is not the known one followed by { name, definition, next time ms or -1, ... }
local kind, known = ARGV[1], ARGV[2]
local revision = call('HGET', REVISIONS, kind) or '0'
if revision == known then return { revision } end
local all, found = call('HGETALL', registered_key(kind)), {}
for i = 1, #all, 2 do
  local time = call('ZSCORE', SCHEDULE_TIMES, all[i])
  found[#found + 1], found[#found + 2] = all[i], all[i + 1]
  found[#found + 1] = kind == 'schedules' and time and tonumber(time) or -1
end
return { revision, found }
