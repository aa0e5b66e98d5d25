-- The rules of the ready jobs, for inspect.lua.
-- keeps: without `repairs` nothing is written.
-- requires  _fsck

local is_in_list, is_near_an_end, check_list
do  -- limits the scope of the rest
  local MOST_US = 3000       -- of the work for a whole ready list: about 250 jobs
  local LIST_LIMIT = 1000    -- a ready list with more entries is not checked as a whole
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

  function check_list(topic)
    local key = queue_key(topic)
    local length = call('LLEN', key)
    if length > LIST_LIMIT then return end
    looked = looked + length
    local ready, ghosts, before_us = {}, 0, done_us
    for _, id in ipairs(call('LRANGE', key, 0, -1)) do
      spend(2)
      if done_us - before_us > MOST_US then return end
      local job, has_record = job_of(id)
      if has_record and not job then  -- for pop it is not a ghost
        found_entry(key, id, function() count_removed(topic, call('LREM', key, 0, id)) end)
      elseif ready[id] or not job or job.topic ~= topic or state_of(id, job) ~= 'ready' or is_ranked(id, job) then
        ghosts = ghosts + 1
      elseif job.call then  -- an older version of the server has made it ready
        found_entry(key, id, function()
          make_ready(id, job)
          count_removed(topic, call('LREM', key, 0, id))
        end)
      end
      ready[id] = true
    end
    local counted = call('HGET', GHOSTS, topic)
    if tonumber(counted or 0) == ghosts and (ghosts > 0 or not counted) then return end
    found('ghost_count', topic, '', function()
      if ghosts > 0 then call('HSET', GHOSTS, topic, ghosts) else call('HDEL', GHOSTS, topic) end
    end)
  end
end

local function check_ranked(key, topic, rank, priority)
  local id = id_of_rank(rank)
  local job = job_of(id)
  local is_its_place = job and job.topic == topic and set_of(job) == key and rank == rank_of(id, job) and state_of(id, job) == 'ready'
  if is_its_place and priority_of(job) == tonumber(priority) then return end
  found_entry(key, id, function() if is_its_place then add_ready(id, job) else call('ZREM', key, rank) end end)
end

-- For a topic that has ready jobs with a call: pop looks at those in CALLED_TOPICS.
local function check_called_topic(topic)
  if not call('ZSCORE', CALLED_TOPICS, topic) then found('called', topic, '', function() arrive_all(topic) end) end
end
