-- Pauses or resumes the deliveries of a topic. Pushes and timers go on meanwhile.
-- requires  _job
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, ms to pause it ("0" = until it is resumed, "" = resume it)
-- returns {}

return function(ARGV)
  local topic, hold = ARGV[1], tonumber(ARGV[2])

  local settings = settings_of(topic)
  if hold then
    settings.paused_until = hold > 0 and now + hold or 0
    if hold > 0 then wake_at(topic, settings.paused_until) end
  elseif settings.paused_until then
    settings.paused_until = nil
    arrive_all(topic)
  end
  save_settings(topic, settings)
  return {}
end
