-- The ready jobs of a topic. Jobs of the usual priority are in a list, in the order in which they became ready. Jobs of any
-- other priority are in a sorted set, by priority. `priorities` has every such job of the bucket, ready or not: if the key
-- does not exist, only the lists are read.
-- requires  _call

local function ranked_key(topic) return tag .. ':ranked:' .. topic end

-- The member of the sorted set for a job: among equals the one that was due first comes first, and of those the shorter id, so
-- that numeric ids sort by number.
local RANK_HEAD = 18
local function rank_of(id, job) return string.format('%014.0f%04d', job.due, #id) .. id end

local function id_of_rank(rank) return string.sub(rank, RANK_HEAD + 1) end

local function has_priorities() return call('EXISTS', PRIORITIES) == 1 end

-- Also if it has none, but had one.
local function note_priority(id, job)
  if job.priority then call('HSET', PRIORITIES, id, int(job.priority)) else call('HDEL', PRIORITIES, id) end
end

-- Puts a job that is in no place among the ready ones; is_first: at the head of its list. An older version of the server can
-- have moved it here without an entry in `priorities`.
local function add_ready(id, job, is_first)
  if job.priority then
    note_priority(id, job)
    call('ZADD', ranked_key(job.topic), int(job.priority), rank_of(id, job))
  else
    call(is_first and 'LPUSH' or 'RPUSH', queue_key(job.topic), id)
  end
end

-- Whether a ready job is in the sorted set. An entry that the list still has for it is then a ghost.
local function is_ranked(id, job)
  return job.priority ~= nil and call('ZSCORE', ranked_key(job.topic), rank_of(id, job)) ~= false
end

-- Removes a ready job from the sorted set; returns whether it was there. Only a job with a priority can be
-- there; one that an older version of the server made ready is in the list.
local function leave_ranked(id, job)
  return job.priority ~= nil and call('ZREM', ranked_key(job.topic), rank_of(id, job)) == 1
end

-- Counts ids that were taken out of a ready list, for those that read it by places (_marks.lua). A broken key has no readers.
local function count_removed(topic, count) redis.pcall('HINCRBY', REMOVED, topic, count) end

-- Including the list's ghosts.
local function count_ready(topic) return call('LLEN', queue_key(topic)) + call('ZCARD', ranked_key(topic)) end

-- The ids from one place to another, inclusive: first those of the list, ghosts too, then the others; and the members of the
-- sorted set for these.
local function ready_ids_at(topic, from, to)
  local ids, length = call('LRANGE', queue_key(topic), from, to), call('LLEN', queue_key(topic))
  if to < length then return ids, {} end
  local ranks = call('ZRANGE', ranked_key(topic), math.max(0, from - length), to - length)
  for _, rank in ipairs(ranks) do ids[#ids + 1] = id_of_rank(rank) end
  return ids, ranks
end
