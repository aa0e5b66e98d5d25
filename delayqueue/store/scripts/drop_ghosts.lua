-- Drops the ghosts of a part of a ready list, after its jobs have come together in this bucket (change.py).
-- requires  _job
-- flags  allow-oom
-- waits  never
-- ARGV  topic, place of the first entry; none: forget how many ghosts there are in all lists
-- returns { place where to go on, -1 = that was all }
local WINDOW = 200

return function(ARGV)
  local topic, place = ARGV[1], tonumber(ARGV[2])
  if not topic then
    call('DEL', GHOSTS)
    return { -1 }
  end
  local dropped, looked = drop_ghosts(topic, place, WINDOW)
  local after = place + looked - dropped
  return { after < call('LLEN', queue_key(topic)) and after or -1 }
end
