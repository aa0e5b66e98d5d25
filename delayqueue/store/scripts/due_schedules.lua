-- Reads the schedules that are due. Changes nothing.
-- requires  _reads
-- flags  no-writes
-- ARGV  schedules at most, how many to skip
-- returns { name, definition, time, ... }; definition "": the store has dropped it, and fsck drops the time

return function(ARGV)
  local most, skipped = ARGV[1], ARGV[2]
  local found, schedules, times = {}, named_key('schedules'), named_key('schedule_times')
  for _, name in ipairs(call('ZRANGEBYSCORE', times, '-inf', int(now), 'LIMIT', skipped, most)) do
    if not may_read(call('HSTRLEN', schedules, name)) then break end
    found[#found + 1], found[#found + 2] = name, call('HGET', schedules, name) or ''
    found[#found + 1] = tonumber(call('ZSCORE', times, name))
  end
  local first = tonumber(call('ZRANGE', times, 0, 0, 'WITHSCORES')[2])
  if first then due_at(first) end
  return found
end
