-- Puts entries of another bucket's key (export.lua) into the same key of this one.
-- requires  _job, _holders
-- waits  pushes
-- needs  sync, replicas
-- ARGV  key without the tag, its type, its topic ("" = none), "1" if its score is a time that the timer looks at, then member or
--       field, score or value, ...; only the first of each two if it is a set or a list
-- returns {}
-- keeps: an entry may arrive twice; only in a list it is then there twice (rebalance.py: _tidy).

-- By the functions of the index, which keep what belongs to it beside the key.
local function add_delayed(topic, due_of, entries)
  local ids, dues, new = {}, {}, {}
  for i = 1, #entries, 2 do ids[#ids + 1], dues[#dues + 1] = entries[i], due_of(tonumber(entries[i + 1])) end
  for i, is_here in ipairs(delay_has(topic, ids, dues)) do
    if not is_here then new[#new + 1], new[#new + 2] = dues[i], ids[i] end
  end
  if #new > 0 then delay_add(topic, new) end
end

local function first_time(entries, time_of)
  local first = math.huge
  for i = 2, #entries, 2 do first = math.min(first, time_of(tonumber(entries[i]))) end
  return first
end

local ADD = {
  hash = function(key, entries) call('HSET', key, unpack(entries)) end,
  set = function(key, entries) call('SADD', key, unpack(entries)) end,
  list = function(key, entries) call('RPUSH', key, unpack(entries)) end,
  zset = function(key, entries)
    local turned = {}
    for i = 1, #entries, 2 do turned[i], turned[i + 1] = entries[i + 1], entries[i] end
    call('ZADD', key, unpack(turned))
  end,
}

-- Where pop looks for ready jobs with a call, and for groups.
local function enter_lines(key, topic, entries)
  for i, lane in ipairs(groups.LANES) do
    local is_grouped = key == groups.key('grouped', lane, topic)
    if i == 2 and (is_grouped or key == called_key(topic)) then enter_called(topic) end
    for at = 1, is_grouped and #entries or 0, 2 do groups.enter(lane, topic, (groups.of_rank(entries[at]))) end
  end
end

return function(ARGV)
  local name, kind, topic, is_timed = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
  local entries, key = { unpack(ARGV, 5) }, tag .. ':' .. name
  local _, due_of = delay_part(name)
  if due_of then add_delayed(topic, due_of, entries) else ADD[kind](key, entries) end
  if string.sub(name, 1, 8) == 'holders:' then call('PEXPIRE', key, HOLDERS_KEPT_MS) end
  if topic ~= '' then call('HSETNX', TOPICS, topic, '') end
  if is_timed then wake_at(topic, first_time(entries, due_of or tonumber)) end
  if kind == 'zset' then enter_lines(key, topic, entries) end
  return {}
end
