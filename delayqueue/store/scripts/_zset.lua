-- The delay index of scheduler = zset: one sorted set a topic, id -> due ms. _wheel.lua has the same functions; those of
-- _zset_ranges.lua and _fsck_zset.lua are for the verbs that need them.
-- requires  _call

-- The topic of a key with delayed jobs (name: without the tag), and how to read a score in it as a due time; nil for others.
local function delay_part(name)
  local topic = string.match(name, '^delay:(.*)$')
  if topic then return topic, tonumber end
end

-- The sorted set for a job.
local function delay_key(topic, _due) return tag .. ':delay:' .. topic end

-- entries = { due, id, due, id, ... }
local function delay_add(topic, entries)
  for i = 1, #entries, 2 do entries[i] = int(entries[i]) end
  call('ZADD', delay_key(topic), unpack(entries))
end

local function delay_remove(topic, id, _due) return call('ZREM', delay_key(topic), id) == 1 end

-- For each id whether it is delayed; dues[i] is its record's due time.
local function delay_has(topic, ids, _dues) return call('ZMSCORE', delay_key(topic), unpack(ids)) end

-- The ids due by `now`, oldest first, at most `limit`.
local function delay_due(topic, limit)
  return call('ZRANGEBYSCORE', delay_key(topic), '-inf', int(now), 'LIMIT', '0', int(limit))
end

-- Removes the ids that delay_due returned in this call: they are the first of the set.
local function delay_drop_due(topic, ids) call('ZREMRANGEBYRANK', delay_key(topic), '0', int(#ids - 1)) end

-- The earliest due time, or nil.
local function delay_next(topic)
  return tonumber(call('ZRANGE', delay_key(topic), '0', '0', 'WITHSCORES')[2])
end

local function delay_count(topic) return call('ZCARD', delay_key(topic)) end

-- Raises if a key that a topic's delayed jobs need besides their delay_key has the wrong type.
local function delay_check(_topic) end
