-- How many jobs a topic may have: settings_of(topic).limit.max_jobs, of which each bucket has a share (_shares.lua). Delayed, ready,
-- reserved and buried ones count. Only pushes ask: what brings a job back, or is made by the server, is never refused.
-- requires  _first, _index_ranges

local room = {}  -- its functions: Lua allows 200 local variables in a script
do  -- limits the scope of the rest
  -- By the server process that asks, since databases of a store share this, and by topic in its bucket; false = it may have any number.
  local known, known_since = {}, 0

  -- What bounds the pushes of a topic, false = nothing: { most: jobs in this bucket, nil = any number, all: in all buckets, drops:
  -- whether the oldest gives way, keeps_order: whether the order in groups is strict }.
  -- A library of functions asks the store once a second, unless it has changed the limits itself; is_asked: it asks now.
  function room.bound_of(topic, is_asked)
    local KNOWN_MS = 1000
    if math.abs(now - known_since) > KNOWN_MS then known, known_since = {}, now end
    local name = sender .. tag .. topic
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

  -- The same of the ready jobs of a group.
  local function first_of_group(topic, group)
    local from, to = groups.bounds(group)
    for _, key in ipairs({ groups.keys(topic, 'grouped') }) do
      local last = call('ZREVRANGEBYLEX', key, to, from, 'LIMIT', '0', '1')[1]
      if last then return groups.id_of_rank(call('ZRANGEBYLEX', key, '[' .. groups.urgency_of_rank(last), to, 'LIMIT', '0', '1')[1]) end
    end
    return nil
  end

  -- The same of the ready jobs without a group; those with a call come last.
  local function first_of_others(topic)
    local MOST_GHOSTS = 500  -- that are taken out to find it: a push of one job counts no commands
    local ranked, priority = first_of_last(ranked_key(topic))
    if ranked and priority > USUAL_PRIORITY then return ranked end
    return first_in_list(topic, MOST_GHOSTS) or ranked or first_of_last(called_key(topic))
  end

  -- The group that has the most ready jobs: `own` if no other has more, nil = the jobs without a group, which count as one.
  local function largest(topic, own)
    local PROBES = 10  -- so a group with a tenth of them is not overlooked
    if call('EXISTS', groups.keys(topic, 'grouped')) == 0 then return nil end
    local others = call('LLEN', queue_key(topic)) - (call('HGET', GHOSTS, topic) or 0) + call('ZCARD', ranked_key(topic)) + call('ZCARD', called_key(topic))
    local found, most = own, own and groups.count(topic, own) or others
    if others > most then found, most = nil, others end
    for _, group in ipairs(groups.probe(topic, PROBES)) do
      local count = groups.count(topic, group)
      if count > most then found, most = group, count end
    end
    return found
  end

  -- Ends the job that gives way to one of `group`, nil = of none: of the group with the most ready jobs; if none is ready, the one that is
  -- due next. So no group's pushes end jobs of one that has fewer. Reserved and buried ones stay. Returns whether there was one.
  local function drop_oldest(topic, group)
    local from = largest(topic, group)
    local id = from and first_of_group(topic, from) or first_of_others(topic) or delay_first(topic, 1)[1]
    local job = id and read_job(id)
    if not job or job.topic ~= topic then return false end
    local state = state_of(id, job)
    if state == 'reserved' or state == 'buried' then return false end  -- the list has a ghost of it
    finish_job(id, job, 'dropped', '')
    tell('dropped', topic, 1)
    return true
  end

  -- How many jobs the topic would have too many with one more, beside `more` that are yet to be written; and what bounds it.
  function room.excess(topic, more)
    local bound = room.bound_of(topic)
    if not bound or not bound.most then return 0, bound end
    local count = count_jobs(topic) + more + 1
    if count > bound.most then bound = room.bound_of(topic, true) end
    return bound and bound.most and count - bound.most or 0, bound
  end

  -- Ends as many jobs, or some, for one of `group`. Returns whether it has ended any.
  function room.make(topic, excess, group)
    local MOST_DROPPED, dropped = 10, 0
    while dropped < math.min(excess, MOST_DROPPED) and drop_oldest(topic, group) do dropped = dropped + 1 end
    return dropped > 0
  end
end
