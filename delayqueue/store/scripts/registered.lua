-- Reads subscribers, schedules or notes, all or one. Changes nothing.
-- requires  _call
-- flags  no-writes
-- ARGV  kind (subscribers | schedules | notes), revision that is known already ("" = none), name ("" = all)
-- returns { revision }, if that is not the known one, followed by { name, definition, time ms or -1, ... }
--         time = the next occurrence of a schedule; since when a subscriber is paused

return function(ARGV)
  local kind, known, name = ARGV[1], ARGV[2], ARGV[3]
  local revision = call('HGET', REVISIONS, kind) or '0'
  if revision == known then return { revision } end

  local function read()
    if name == '' then return call('HGETALL', named_key(kind)) end
    local definition = call('HGET', named_key(kind), name)
    return definition and { name, definition } or {}
  end

  local all, found = read(), {}
  for i = 1, #all, 2 do
    local time = kind == 'schedules' and call('ZSCORE', named_key('schedule_times'), all[i])
      or kind == 'subscribers' and call('HGET', named_key('subscribers_paused'), all[i])
    found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    found[#found + 1] = time and tonumber(time) or -1
  end
  return { revision, found }
end
