-- Copies a topic's settings from the first bucket to this one, each bucket with its share of the limits.
-- requires  _shares
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, settings in the first bucket (JSON; "" = this is the first one), this bucket's number (from 0),
--       number of buckets
-- returns {}

return function(ARGV)
  local topic, written, number, buckets = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  local settings = written == '' and settings_of(topic) or cjson.decode(written)

  save_settings(topic, settings)
  room.forget()
  if settings.limit then set_limit(topic, settings, settings.limit, number, buckets) else call('HDEL', RATES, topic) end
  if (settings.paused_until or 0) > 0 then wake_at(topic, settings.paused_until) end
  if not is_paused(settings) then arrive_all(topic) end
  return {}
end
