-- The delay index of scheduler = zset: one sorted set a topic, id -> due ms. _wheel.lua has the same functions.

-- The sorted set in which a job stands.
local function delay_key(topic, _due) return tag .. ':delay:' .. topic end

-- entries = { due, id, due, id, ... }, due as a string
local function delay_add(topic, entries) call('ZADD', delay_key(topic), unpack(entries)) end

local function delay_remove(topic, id, _due) return call('ZREM', delay_key(topic), id) == 1 end

-- For each id whether it is delayed; dues[i] is its record's due time.
local function delay_has(topic, ids, _dues) return call('ZMSCORE', delay_key(topic), unpack(ids)) end

-- The ids due by `now`, oldest first, at most `limit`.
local function delay_due(topic, now, limit)
  return call('ZRANGEBYSCORE', delay_key(topic), '-inf', int(now), 'LIMIT', 0, limit)
end

-- Removes the ids that delay_due returned in this very script: they are the first of the set.
local function delay_drop_due(topic, ids) call('ZREMRANGEBYRANK', delay_key(topic), 0, #ids - 1) end

-- The earliest due time, or nil.
local function delay_next(topic)
  return tonumber(call('ZRANGE', delay_key(topic), 0, 0, 'WITHSCORES')[2])
end

local function delay_count(topic) return call('ZCARD', delay_key(topic)) end

-- Raises where a key is of another type that a topic's delayed jobs need beside their delay_key.
local function delay_check(_topic) end

-- How many jobs have from <= due < to, and about how many sets had to be looked at for that.
local function delay_count_between(topic, from, to)
  return call('ZCOUNT', delay_key(topic), int(from), '(' .. int(to)), 1
end

-- A page of the ids with from <= due <= to, in the order of their due times.
local function delay_page(topic, from, to, offset, limit)
  return call('ZRANGEBYSCORE', delay_key(topic), int(from), int(to), 'LIMIT', offset, limit)
end

-- The first `limit` ids, in the order of their due times.
local function delay_first(topic, limit) return call('ZRANGE', delay_key(topic), 0, limit - 1) end

-- For inspect.lua. There is nothing beside the sorted set that could disagree with it.
local function delay_mismatch(_topic) return nil end

-- What a key is (name: without the tag): its type, its topic, how a score in it is read as a due time, and a function that
-- returns how to mend what disagrees with it, or nil.
local function delay_purpose(name)
  local topic = string.match(name, '^delay:(.*)$')
  if topic then return 'zset', topic, tonumber, delay_mismatch end
  return nil
end
