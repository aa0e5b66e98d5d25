-- Registers subscribers, schedules or notes on dead letters.
-- requires  _registry
-- flags  allow-oom
-- waits  pushes
-- needs  sync, replicas
-- ARGV  kind (subscribers | schedules | notes), what to do with a name that exists (replace | keep | fail | declare; or "=" and a
--       definition: replace that one only),
--       then for each: name, definition (JSON), time ms of the first occurrence ("" = none)
--       declare: these are all that the config file declares; others that were declared before are removed
-- returns a code for each, WRONG_STATE if another one is there than the expected one; declare changes nothing if one of them
--         is refused
-- keeps: what a config file declares and what was registered at run time never replace each other. An entry that is
--        already registered as given stays untouched. A schedule whose times stay as they are keeps its next one, which
--        may be due, or gets one if the store has lost it.

return function(ARGV)
  local kind, if_exists = ARGV[1], ARGV[2]
  local declared, expected = if_exists == 'declare', string.match(if_exists, '^=(.*)$')
  local entries = named_key(kind)
  local codes, changed, kept = {}, false, {}

  local function code_of(old, definition)
    if expected and old ~= expected then return WRONG_STATE end
    if not old or old == definition then return OK end
    if is_declared(old) ~= declared then return EXISTS end
    return if_exists == 'fail' and EXISTS or OK
  end

  local function has_same_times(old, definition)
    local readable, one, other = pcall(function() return cjson.decode(old), cjson.decode(definition) end)
    if not readable or type(one) ~= 'table' or type(other) ~= 'table' then return false end
    for _, field in ipairs({ 'cron', 'every_ms', 'tz', 'paused' }) do
      if one[field] ~= other[field] then return false end
    end
    return true
  end

  local function keeps_time(name, old, definition)
    if kind ~= 'schedules' or not old then return false end
    if old ~= definition and not has_same_times(old, definition) then return false end
    return call('ZSCORE', named_key('schedule_times'), name)
  end

  local function set_time(name, time)
    if time ~= '' then
      call('ZADD', named_key('schedule_times'), time, name)
    elseif kind == 'schedules' then
      call('ZREM', named_key('schedule_times'), name)  -- of the one that it replaces
    end
  end

  local function put(name, definition, time)
    local old = call('HGET', entries, name)
    if old and old ~= definition and if_exists == 'keep' then return end
    if not keeps_time(name, old, definition) then set_time(name, time) end
    if old == definition then return end
    call('HSET', entries, name, definition)
    changed = true
  end

  local function drop_others()
    local all = call('HGETALL', entries)
    for i = 1, #all, 2 do
      if not kept[all[i]] and is_declared(all[i + 1]) then
        forget_registered(kind, all[i])
        changed = true
      end
    end
  end

  local refused = false
  for at = 3, #ARGV, 3 do
    local code = code_of(call('HGET', entries, ARGV[at]), ARGV[at + 1])
    codes[#codes + 1], kept[ARGV[at]], refused = code, true, refused or code ~= OK
  end
  if refused and declared then return codes end
  for i, code in ipairs(codes) do
    local at = i * 3
    if code == OK then put(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
  end
  if declared then drop_others() end
  if changed then call('HINCRBY', REVISIONS, kind, 1) end
  return codes
end
