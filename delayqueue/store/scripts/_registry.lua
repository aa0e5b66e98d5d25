-- Shared by subscribers, schedules and notes on dead letters.
-- requires  _call

-- Whether a config file declares it; an unreadable one counts as made at run time.
local function is_declared(definition)
  local readable, found = pcall(cjson.decode, definition)
  return readable and type(found) == 'table' and found.declared == true
end

-- Removes one of them.
local function forget_registered(kind, name)
  call('HDEL', named_key(kind), name)
  if kind == 'schedules' then call('ZREM', named_key('schedule_times'), name) end
  if kind == 'subscribers' then call('HDEL', named_key('subscribers_paused'), name) end
end
