-- Ranges of due times in the sorted sets, for the verbs that read or count them.
-- requires  _index

-- How many jobs have from <= due < to, and about how many sets had to be read for that.
local function delay_count_between(topic, from, to)
  return call('ZCOUNT', delay_key(topic), int(from), '(' .. int(to)), 1
end

-- A page of the jobs with from <= due <= to, in the order of their due times: { id, due, ... }
local function delay_page(topic, from, to, offset, limit)
  return call('ZRANGEBYSCORE', delay_key(topic), int(from), int(to), 'WITHSCORES', 'LIMIT', offset, limit)
end

-- The first `limit` ids, in the order of their due times.
local function delay_first(topic, limit) return call('ZRANGE', delay_key(topic), 0, limit - 1) end
