-- Reads how many subscribers and schedules there are. Changes nothing.
-- requires  _call
-- flags  no-writes
-- returns { subscribers, schedules }

return function(ARGV)
  return { call('HLEN', registered_key('subscribers')), call('HLEN', registered_key('schedules')) }
end
