-- Reads the schedules that are due. Changes nothing.
-- requires  _reads
-- flags  no-writes
-- ARGV  schedules at most
-- returns { name, definition, time, ... }

return function(ARGV)
  local found = {}
  for _, name in ipairs(call('ZRANGEBYSCORE', SCHEDULE_TIMES, '-inf', int(now), 'LIMIT', 0, ARGV[1])) do
    if not may_read(call('HSTRLEN', registered_key('schedules'), name)) then break end
    found[#found + 1], found[#found + 2] = name, call('HGET', registered_key('schedules'), name)
    found[#found + 1] = tonumber(call('ZSCORE', SCHEDULE_TIMES, name))
  end
  local first = tonumber(call('ZRANGE', SCHEDULE_TIMES, 0, 0, 'WITHSCORES')[2])
  if first then due_at(first) end
  return found
end
