-- Pauses or resumes a subscriber.
-- requires  _registry
-- flags  allow-oom
-- waits  changes
-- ARGV  name, "1" to pause it, "0" to resume it
-- returns { code }
-- keeps: a pause is stored beside the definition, so that reading a config file again does not end it; it goes with the
--        subscriber. The revision grows only if something has changed.

return function(ARGV)
  local name, is_paused, paused = ARGV[1], ARGV[2] == '1', named_key('subscribers_paused')
  if call('HEXISTS', named_key('subscribers'), name) == 0 then return { NOT_FOUND } end
  local changed
  if is_paused then
    changed = call('HSETNX', paused, name, int(now))
  else
    changed = call('HDEL', paused, name)
  end
  if changed == 1 then call('HINCRBY', REVISIONS, 'subscribers', 1) end
  return { OK }
end
