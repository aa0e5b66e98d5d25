-- How many jobs a topic may have: settings_of(topic).limit.max_jobs, of which each bucket has a share (_shares.lua). Delayed, ready,
-- reserved and buried ones count. Only pushes ask: what brings a job back, or is made by the server, is never refused.
-- requires  _first, _index_ranges

local room = {}  -- its functions: Lua allows 200 local variables in a script
do  -- limits the scope of the rest
  local KNOWN_MS = 1000
  local known, known_since = {}, 0  -- by topic in its bucket, false = it may have any number

  -- What bounds the pushes of a topic, false = nothing: { most: jobs in this bucket, nil = any number, all: in all buckets, drops:
  -- whether the oldest gives way, keeps_order: whether the order in groups is strict }.
  -- A library of functions asks the store once a second, unless it has changed the limits itself; is_asked: it asks now.
  function room.bound_of(topic, is_asked)
    if math.abs(now - known_since) > KNOWN_MS then known, known_since = {}, now end
    local name = tag .. topic
    if is_asked or known[name] == nil then
      local limit = settings_of(topic, redis.pcall('HGET', TOPICS, topic) or '').limit  -- a broken key bounds nothing
      local most = limit and limit.share and limit.share.max_jobs
      local is_bound = most or limit and limit.group_order
      known[name] = is_bound and { most = most, all = limit.max_jobs, drops = limit.when_full == 'drop_oldest', keeps_order = limit.group_order } or false
    end
    return known[name]
  end

  function room.forget() known = {} end

  local function count_jobs(topic)
    local ready, called = count_ready(topic)
    if ready > 0 then ready = ready - (call('HGET', GHOSTS, topic) or 0) end
    return ready + called + delay_count(topic) + call('ZCARD', reserved_key(topic)) + call('ZCARD', buried_key(topic))
  end

  -- Of the least urgent jobs of a sorted set the one that has waited longest.
  local function first_of_last(key)
    local last = call('ZRANGE', key, '-1', '-1', 'WITHSCORES')[2]
    return last and id_of_rank(call('ZRANGEBYSCORE', key, last, last, 'LIMIT', '0', '1')[1]), tonumber(last)
  end

  -- The first job of the group that has its turn last.
  local function first_of_groups(lane, topic)
    for _, kind in ipairs({ 'next', 'turns', 'held' }) do
      local rank = groups.rank_at('-1', kind, lane, topic)
      if rank then return groups.id_of_rank(rank) end
    end
    return nil
  end

  -- The job that gives way: of the ready jobs that workers are to get last, the one that has waited longest; then one of a group; if
  -- none is ready, one with a call; if there is none, the one that is due next. Reserved and buried ones stay.
  local function oldest(topic)
    local MOST_GHOSTS = 500  -- that are taken out to find it: a push of one job counts no commands
    local ranked, priority = first_of_last(ranked_key(topic))
    if ranked and priority > USUAL_PRIORITY then return ranked end
    return first_in_list(topic, MOST_GHOSTS) or ranked or first_of_groups('', topic) or first_of_last(called_key(topic))
      or first_of_groups('called_', topic) or delay_first(topic, 1)[1]
  end

  local function drop_oldest(topic)
    local id = oldest(topic)
    local job = id and read_job(id)
    if not job or job.topic ~= topic then return false end
    local state = state_of(id, job)
    if state == 'reserved' or state == 'buried' then return false end  -- the list has a ghost of it
    finish_job(id, job, 'dropped', '')
    tell('dropped', topic, 1)
    return true
  end

  -- Whether the topic may get a job beside `more` that are yet to be written; others give way to it if they shall, a few more
  -- if the topic has too many already. Returns what bounds it, too.
  function room.make(topic, more)
    local MOST_DROPPED = 10
    local bound = room.bound_of(topic)
    if not bound or not bound.most then return true, bound end
    local count = count_jobs(topic) + more + 1
    if count <= bound.most then return true, bound end
    bound = room.bound_of(topic, true)
    local excess, dropped = bound and bound.most and count - bound.most or 0, 0
    if excess <= 0 then return true, bound end
    while bound.drops and dropped < math.min(excess, MOST_DROPPED) and drop_oldest(topic) do dropped = dropped + 1 end
    return dropped > 0, bound
  end
end
