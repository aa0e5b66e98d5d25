-- Reads how many subscribers and schedules there are. Changes nothing.
-- requires  _call
-- flags  no-writes
-- returns { subscribers, schedules }

return function(ARGV)
  return { call('HLEN', named_key('subscribers')), call('HLEN', named_key('schedules')) }
end
