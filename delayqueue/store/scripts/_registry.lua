-- Shared by subscribers, schedules and notes on dead letters.
-- requires  _call

-- Whether a config file declares it; an unreadable one counts as made at run time.
local function is_declared(definition)
  local readable, found = pcall(cjson.decode, definition)
  return readable and type(found) == 'table' and found.declared == true
end

-- Removes one of them.
local function forget_registered(kind, name)
  call('HDEL', registered_key(kind), name)
  if kind == 'schedules' then call('ZREM', SCHEDULE_TIMES, name) end
  if kind == 'subscribers' then call('HDEL', PAUSED, name) end
end
