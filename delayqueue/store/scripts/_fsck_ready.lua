-- The rules of the ready jobs, for inspect.lua.
-- keeps: without `repairs` nothing is written.
-- requires  _fsck

local is_in_list, is_near_an_end, is_long, check_list, check_ghosts
do  -- limits the scope of the rest
  local LIST_LIMIT = 1000    -- a ready list with more entries is not checked as a whole
  local LONG = 50            -- entries: about a quarter of what a call can check
  local FIRST_READ, MOST_READ = 4, 64  -- entries that are read together
  local END_OF_LIST = 10000  -- entries read at either end to find one id: about 1 ms

  -- Whether the id is in the topic's ready list, nil if that is too long for this call.
  function is_in_list(topic, id)
    if not lists[topic] then
      local length = call('LLEN', queue_key(topic))
      if length > LIST_LIMIT or length > left then return nil end
      spend(length / 16)
      lists[topic] = {}
      for _, listed in ipairs(call('LRANGE', queue_key(topic), 0, -1)) do lists[topic][listed] = true end
    end
    return lists[topic][id] ~= nil
  end

  function is_near_an_end(topic, id)
    local key = queue_key(topic)
    spend(math.min(call('LLEN', key), 2 * END_OF_LIST) / 32)
    local place = call('LPOS', key, id, 'MAXLEN', END_OF_LIST) or call('LPOS', key, id, 'RANK', -1, 'MAXLEN', END_OF_LIST)
    return place ~= false
  end

  -- Whether the list would be the most of a call's work.
  function is_long(topic) return call('LLEN', queue_key(topic)) > LONG end

  -- Calls look(id, job, has_record, is_ready) for each id of a list; returns whether it came to its end. Reads few at first: their
  -- records can be megabytes.
  local function each_listed(topic, ids, look)
    local at, size = 1, FIRST_READ
    while at <= #ids do
      if has_done_enough() then return false end
      local some = { unpack(ids, at, math.min(at + size - 1, #ids)) }
      local records, jobs, dues, bytes = call('HMGET', JOBS, unpack(some)), {}, {}, 0
      for i, record in ipairs(records) do
        jobs[i] = record and unpack_record(record) or false
        dues[i], bytes = jobs[i] and jobs[i].due or 0, bytes + (record and #record or 0)
      end
      spend(#some + bytes / UNIT_BYTES)
      local reserved, buried = call('ZMSCORE', reserved_key(topic), unpack(some)), call('ZMSCORE', buried_key(topic), unpack(some))
      local delayed = delay_has(topic, some, dues)
      for i, id in ipairs(some) do
        local job = jobs[i]
        local is_ready = job and job.topic == topic and not (reserved[i] or delayed[i] or buried[i] or is_ranked(id, job))
        look(id, job, records[i], is_ready)
      end
      at, size = at + #some, bytes > UNIT_BYTES * #some and FIRST_READ or math.min(2 * size, MOST_READ)
    end
    return true
  end

  -- A list that is too long to be read. If it has more ids than the bucket has jobs, the others are ghosts.
  local function check_long_list(topic, length)
    local lost = length - (tonumber(call('HGET', GHOSTS, topic) or 0) or 0) - call('HLEN', JOBS)
    if lost <= 0 then return end
    found('ghost_count', topic, '', function() call('HINCRBY', GHOSTS, topic, lost) end)
    tell('lost', topic, lost)
  end

  -- A whole list, in one call: what is too much for that is left out.
  function check_list(topic)
    local key = queue_key(topic)
    local length = call('LLEN', key)
    if length > LIST_LIMIT then return check_long_list(topic, length) end
    looked = looked + length
    local seen, ghosts, missing = {}, 0, 0
    local is_whole = each_listed(topic, call('LRANGE', key, 0, -1), function(id, job, has_record, is_ready)
      if has_record and not job then  -- for pop it is not a ghost
        found_entry(key, id, function() count_removed(topic, call('LREM', key, 0, id)) end)
      elseif seen[id] or not is_ready then
        ghosts = ghosts + 1
        if not has_record then missing = missing + 1 end
      elseif job.call or job.group then  -- an older version of the server has made it ready
        found_entry(key, id, function()
          make_ready(id, job)
          count_removed(topic, call('LREM', key, 0, id))
        end)
      end
      seen[id] = true
    end)
    local counted = call('HGET', GHOSTS, topic)
    local before = tonumber(counted or 0)
    if not is_whole or before == ghosts and (ghosts > 0 or not counted) then return end
    local lost = math.min(ghosts - (before or 0), missing)  -- as in count_ghosts
    if lost > 0 then tell('lost', topic, lost) end
    found('ghost_count', topic, '', function()
      if ghosts > 0 then call('HSET', GHOSTS, topic, ghosts) else call('HDEL', GHOSTS, topic) end
    end)
  end

  -- The count of an empty list; the others are keys of their own.
  function check_ghosts(topic)
    if call('LLEN', queue_key(topic)) == 0 then check_list(topic) end
  end
end

local function check_ranked(key, topic, rank, score, id)
  id = id or id_of_rank(rank)
  local job, has_record = job_of(id)
  local is_its_place = job and job.topic == topic and set_of(job) == key and rank == rank_of(id, job) and state_of(id, job) == 'ready'
  if is_its_place and tonumber(groups.score_of(job)) == tonumber(score) then return true end
  found_entry(key, id, function() if is_its_place then add_ready(id, job) else call('ZREM', key, rank) end end, not has_record and topic)
end

-- For a topic that has ready jobs with a call: pop looks at those in CALLED_TOPICS.
local function check_called_topic(topic)
  if not call('ZSCORE', CALLED_TOPICS, topic) then found('called', topic, '', function() arrive_all(topic) end) end
end

-- groups

-- How the ready jobs of groups in a lane, and their turns, are checked.
local function checks_of_groups(lane)
  local checks = {}

  -- Whether nobody would let a group go that is held since then. Held ones at which pop looks first, since the topic's limits have
  -- changed (let_changed_go), wait for a poll only.
  local function is_stuck(topic, group, since)
    local limit = settings_of(topic).limit
    return groups.are_limited(limit) and since > (limit.changed or 0) and groups.room(lane, topic, group, limit, 1, true) > 0
  end

  local function found_stuck(topic, group)
    found('group', topic, group, function() groups.let_go(lane, topic, group, 1) end)
  end

  function checks.grouped(key, topic, rank, score)
    local group, id = groups.of_rank(rank)
    if check_ranked(key, topic, rank, score, id) then
      if not groups.waits(lane, topic, group) and not call('ZSCORE', groups.key('held', lane, topic), group) then found_stuck(topic, group) end
      if lane ~= '' and groups.waits(lane, topic, group) then check_called_topic(topic) end
    elseif repairs then
      groups.leave(lane, topic, group)
    end
  end

  function checks.line(key, topic, group)
    if not groups.has(lane, topic, group) then found_entry(key, group, function() call('ZREM', key, group) end) end
  end

  function checks.held(key, topic, group, since)
    if not groups.has(lane, topic, group) or groups.waits(lane, topic, group) then
      found_entry(key, group, function() call('ZREM', key, group) end)
    elseif is_stuck(topic, group, tonumber(since)) then
      found_stuck(topic, group)
    end
  end

  function checks.rested(key, topic, group)
    if call('EXISTS', groups.key('grouped', lane, topic)) == 0 then found_entry(key, group, function() call('UNLINK', key) end) end
  end

  return checks
end

-- Of jobs in hand.
local function check_hand(key, topic, member)
  local group, id = groups.of_hand(member)
  local job = job_of(id)
  if job and job.topic == topic and job.group == group and call('ZSCORE', reserved_key(topic), id) then return end
  found_entry(key, id, function()
    call('ZREM', key, member)
    groups.let_more_go(topic, group, 1)
  end)
end
