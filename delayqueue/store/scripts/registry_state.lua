-- Reads the store's time, and how many subscribers and schedules there are. Changes nothing.
-- requires  _prelude
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- returns { now ms, subscribers, schedules }
return { now_ms(), call('HLEN', registered_key('subscribers')), call('HLEN', registered_key('schedules')) }
