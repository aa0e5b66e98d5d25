-- The ready jobs of a topic. Jobs of the usual priority are in a list, in the order in which they became ready. Jobs of any
-- other priority are in a sorted set, by priority; jobs with a call, which no worker gets, are in another one, and those of groups
-- in two more (_groups.lua). `priorities` has every job of the bucket that goes into a sorted set, ready or not: if the key does not
-- exist, only the lists are read.
-- requires  _groups

local function ranked_key(topic) return tag .. ':ranked:' .. topic end
local function called_key(topic) return tag .. ':called:' .. topic end

-- The sorted set that the job is in while it is ready; nil: it is in the list.
local function set_of(job)
  if job.group then return groups.place_of(job) end
  if job.call then return called_key(job.topic) end
  return job.priority and ranked_key(job.topic)
end

local function is_for_set(job) return job.call ~= nil or job.priority ~= nil or job.group ~= nil end

local function priority_of(job) return job.priority or USUAL_PRIORITY end

-- The name by which polls ask for the job, and announcements tell of it.
local function asked_as(job) return job.call and CALLS or job.topic end

-- The member of the sorted set for a job: among equals the one that was due first comes first, and of those the shorter id, so
-- that numeric ids sort by number.
local rank_of, id_of_rank
do
  local HEAD = 14 + 4

  function rank_of(id, job)
    if job.group then return groups.rank_of(id, job, priority_of(job)) end
    return string.format('%014.0f%04d', job.due, #id) .. id
  end

  -- Of one that is not of a group.
  function id_of_rank(rank) return string.sub(rank, HEAD + 1) end
end

local function has_priorities() return call('EXISTS', PRIORITIES) == 1 end

-- Also if it has none, but had one.
local function note_priority(id, job)
  if is_for_set(job) then call('HSET', PRIORITIES, id, int(priority_of(job))) else call('HDEL', PRIORITIES, id) end
end

-- The topic has ready jobs with a call, or is about to have some: pop finds it, unless it has just found that it may not take them.
local function enter_called(topic) call('ZADD', CALLED_TOPICS, 'NX', int(now), topic) end

-- Puts a job that is in no place among the ready ones; is_first: at the head of its list. An older version of the server can
-- have moved it here without an entry in `priorities`.
local function add_ready(id, job, is_first)
  local key = set_of(job)
  if not key then
    call(is_first and 'LPUSH' or 'RPUSH', queue_key(job.topic), id)
    return
  end
  note_priority(id, job)
  if job.call then enter_called(job.topic) end
  call('ZADD', key, groups.score_of(job), rank_of(id, job))
  if job.group then groups.enter(groups.lane_of(job), job.topic, job.group) end
end

-- Whether a ready job is in its sorted set. An entry that the list still has for it is then a ghost.
local function is_ranked(id, job)
  local key = set_of(job)
  return key ~= nil and call('ZSCORE', key, rank_of(id, job)) ~= false
end

-- Counts ids that were taken out of a ready list, for those that read it by places (_marks.lua). A broken key has no readers.
local function count_removed(topic, count) redis.pcall('HINCRBY', REMOVED, topic, int(count)) end

-- Whether the topic has ready jobs, or ghosts of some.
local function has_ready(topic)
  return call('EXISTS', queue_key(topic), ranked_key(topic), called_key(topic), groups.keys(topic, 'grouped')) > 0
end

-- How many workers can get, including the list's ghosts and what is held, and how many have a call.
local function count_ready(topic)
  local listed = call('LLEN', queue_key(topic))
  if call('EXISTS', ranked_key(topic), called_key(topic), groups.keys(topic, 'grouped')) == 0 then return listed, 0 end
  local grouped, called_grouped = groups.keys(topic, 'grouped')
  return listed + call('ZCARD', ranked_key(topic)) + call('ZCARD', grouped), call('ZCARD', called_key(topic)) + call('ZCARD', called_grouped)
end
