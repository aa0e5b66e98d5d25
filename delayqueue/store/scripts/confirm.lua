-- Drops entries that the bucket to which they belong has imported (import.lua).
-- requires  _job
-- flags  allow-oom
-- waits  never
-- ARGV  key without the tag, its type, its topic ("" = none), then as for import; of a list place, id, ... in order
-- returns {}
-- keeps: what is dropped is what was named, even if an answer was lost and the call is made again.
local COMMAND = { hash = 'HDEL', zset = 'ZREM', set = 'SREM' }

local function drop_delayed(topic, due_of, entries)
  for i = 1, #entries, 2 do delay_remove(topic, entries[i], due_of(tonumber(entries[i + 1]))) end
end

local function drop_from_list(key, topic, entries)
  local first, last, dropped = tonumber(entries[1]), tonumber(entries[#entries - 1]), 0
  local here = call('LRANGE', key, first, last)
  for i = 1, #entries, 2 do
    if here[entries[i] - first + 1] == entries[i + 1] then
      call('LSET', key, entries[i], '')  -- no id is empty
      dropped = dropped + 1
    end
  end
  if dropped == 0 then return end
  call('LREM', key, dropped, '')
  count_removed(topic, dropped)
end

local function drop(key, kind, entries)
  local names, width = {}, kind == 'set' and 1 or 2
  for i = 1, #entries, width do names[#names + 1] = entries[i] end
  call(COMMAND[kind], key, unpack(names))
end

return function(ARGV)
  local name, kind, topic = ARGV[1], ARGV[2], ARGV[3]
  local entries, key = { unpack(ARGV, 4) }, tag .. ':' .. name
  local _, due_of = delay_part(name)
  if due_of then
    drop_delayed(topic, due_of, entries)
  elseif kind == 'list' then
    drop_from_list(key, topic, entries)
  else
    drop(key, kind, entries)
  end
  for _, lane in ipairs(kind == 'zset' and groups.LANES or {}) do
    for at = 1, key == groups.key('grouped', lane, topic) and #entries or 0, 2 do groups.leave(lane, topic, (groups.of_rank(entries[at]))) end
  end
  return {}
end
