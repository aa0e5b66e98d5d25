-- What subscribers and schedules share.
-- requires  _prelude

-- Drops one of them.
local function forget_registered(kind, name)
  call('HDEL', registered_key(kind), name)
  if kind == 'schedules' then call('ZREM', SCHEDULE_TIMES, name) end
end
