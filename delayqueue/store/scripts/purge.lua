-- Drops jobs of a topic in one state, or of all at once, without a trace.
-- requires  _job, _index_ranges
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, state (delayed | ready | reserved | buried | ended; "" = all), jobs dropped at most
-- returns { 1 if there are more, else 0 }; the answer says how many were dropped
-- keeps: it comes to an end even if entries without a job of this topic stay where they are. If all states are dropped
--        and there are no more, the topic had no job at that moment, however they move.

-- The ids from one place to another, inclusive: first those of the list, ghosts too, then those of the sorted sets; and for
-- the latter, by the same index, { key, member, lane if it is of a group }.
local function ready_ids_at(topic, from, to)
  local ids, places = call('LRANGE', queue_key(topic), from, to), {}
  local before = call('LLEN', queue_key(topic))
  for number, key in ipairs({ ranked_key(topic), called_key(topic), groups.keys(topic, 'grouped') }) do
    if to < before then break end
    for _, rank in ipairs(call('ZRANGE', key, math.max(0, from - before), to - before)) do
      local lane = groups.LANES[number - 2]
      ids[#ids + 1] = lane and select(2, groups.of_rank(rank)) or id_of_rank(rank)
      places[#ids] = { key, rank, lane }
    end
    before = before + call('ZCARD', key)
  end
  return ids, places
end

return function(ARGV)
  local topic = ARGV[1]
  local states = ARGV[2] ~= '' and { ARGV[2] } or { 'delayed', 'ready', 'reserved', 'buried', 'ended' }
  local limit = math.max(1, math.floor(tonumber(ARGV[3]) / #states))

  -- Also the places of some of them in a sorted set of ready jobs.
  local function ids_of(state)
    if state == 'delayed' then return delay_first(topic, limit), {} end
    if state == 'ready' then return ready_ids_at(topic, 0, limit - 1) end
    local keys = { reserved = reserved_key(topic), buried = buried_key(topic), ended = done_key(topic) }
    return call('ZRANGE', keys[state], 0, limit - 1), {}
  end

  local function drop(id, state)
    if state == 'ended' then
      local ended = call('HGET', ENDED, id)
      if ended then forget_ended(id, ended) end
      call('ZREM', done_key(topic), id)
      return ended ~= false
    end
    local job = read_job(id)
    if not job or job.topic ~= topic or state_of(id, job) ~= state then return false end
    job.retain = 0
    finish_job(id, job, 'cancelled', '')
    return true
  end

  -- Returns how many were dropped, and whether there are more.
  local function drop_first(state)
    local ids, places = ids_of(state)
    local dropped, stuck, looked = 0, 0, 0
    for i, id in ipairs(ids) do
      if has_done_enough() then break end
      looked = looked + 1
      local done, is_dropped = pcall(drop, id, state)
      if not done then
        stuck = stuck + 1  -- a broken key: it stays
      elseif is_dropped then
        dropped = dropped + 1
        tell('purged', topic, 1)
      elseif places[i] then  -- an older version of the server has ended the job
        local key, rank, lane = unpack(places[i])
        call('ZREM', key, rank)
        if lane then groups.leave(lane, topic, (groups.of_rank(rank))) end
      end
    end
    if state == 'ready' then drop_ghosts(topic, 0, looked) end
    local goes_on = dropped > 0 or stuck < looked and (state == 'ready' or state == 'ended')
    return dropped, #ids == limit and goes_on
  end

  local total, has_more = 0, false
  for _, state in ipairs(states) do
    local dropped, more = drop_first(state)
    total, has_more = total + dropped, has_more or more
  end
  has_more = has_more or total > 0 and has_done_enough()
  return { has_more and 1 or 0 }, nil, total
end
