-- Moves what is due to the ready lists: delayed jobs, and reservations whose TTR has run out; ends expired jobs and
-- sweeps kept results at their time.
-- KEYS  tag, queue name
-- ARGV  sender, limit (jobs moved at most in this call, shared among the due topics)
-- returns { ms until the next due time (0 = more is due now, -1 = nothing waits), { topic, jobs made ready, ... },
--           redelivered, buried, expired, set aside }
-- keeps: the work is proportional to what is due; a topic that fails does not hold up the others.
local sender, limit = ARGV[1], tonumber(ARGV[2])
local TOPICS_PER_CALL = 500
local SET_ASIDE_MS = 60000  -- a topic with a broken key is tried again after this
local now = now_ms()
local redelivered, buried, expired, set_aside = 0, 0, 0, 0

local function due_of(key, share)
  return call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', 0, share)
end

local function first_of(key)
  return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- A record that cannot be read is kept for a person, out of the way.
local function put_aside(key, id)
  call('ZADD', tag .. ':broken', int(now), id)
  call('ZREM', key, id)
  set_aside = set_aside + 1
end

-- Reservations that ran out. Returns how many jobs became ready and how many were looked at.
local function move_expired_reservations(topic, share)
  local ids = due_of(reserved_key(topic), share)
  local moved = 0
  for _, id in ipairs(ids) do
    local record = call('HGET', JOBS, id)
    local job = record and unpack_record(record)
    if job and job.topic == topic then
      local state = fail_job(id, job, 'ttr expired', now)
      if state == 'ready' then moved = moved + 1 end
      if state == 'buried' then buried = buried + 1 end
      if state == 'expired' then expired = expired + 1 end
      redelivered = redelivered + 1
    else
      put_aside(reserved_key(topic), id)
    end
  end
  return moved, #ids
end

local function move_due(topic, share)
  local ids = delay_due(topic, now, share)
  if #ids > 0 then
    call('RPUSH', queue_key(topic), unpack(ids))
    delay_drop_due(topic, ids)
  end
  return #ids
end

local function end_expired(topic, share)
  local ids = due_of(expire_key(topic), share)
  for _, id in ipairs(ids) do
    local record = call('HGET', JOBS, id)
    local job = record and unpack_record(record)
    local state = job and state_of(id, job)
    if state == 'delayed' or state == 'ready' then
      finish_job(id, job, 'expired', '', now)
      expired = expired + 1
    end
    call('ZREM', expire_key(topic), id)
  end
  return #ids
end

local function sweep_ended(topic, share)
  local ids = due_of(done_key(topic), share)
  for _, id in ipairs(ids) do
    local ended = call('HGET', ENDED, id)
    if ended then forget_ended(id, ended) end
    call('ZREM', done_key(topic), id)
  end
  return #ids
end

-- Sets the topic's next timer; returns whether more than its share was due.
local function rearm(topic)
  local first = delay_next(topic)
  for _, key in ipairs({ reserved_key(topic), expire_key(topic), done_key(topic) }) do
    local time = first_of(key)
    if time and (not first or time < first) then first = time end
  end
  if first then call('ZADD', TIMERS, int(first), topic) else call('ZREM', TIMERS, topic) end
end

local function tick(topic, share)
  local moved, taken = move_expired_reservations(topic, share)
  taken = taken + end_expired(topic, share - taken)
  taken = taken + sweep_ended(topic, share - taken)
  moved = moved + move_due(topic, share - taken)
  rearm(topic)
  return moved
end

call('ZREM', TIMERS, '')  -- after a first write that takes no memory, Redis lets the others pass when memory is full
local topics = call('ZRANGEBYSCORE', TIMERS, '-inf', int(now), 'LIMIT', 0, TOPICS_PER_CALL)
local share = math.max(1, math.floor(limit / math.max(1, #topics)))
local ready = {}
for _, topic in ipairs(topics) do
  local done, moved = pcall(tick, topic, share)
  if not done then
    call('ZADD', TIMERS, int(now + SET_ASIDE_MS), topic)
    set_aside = set_aside + 1
  elseif moved > 0 then
    announce(sender, topic, moved)
    ready[#ready + 1] = topic
    ready[#ready + 1] = moved
  end
end

local next_time = first_of(TIMERS)
return { next_time and math.max(0, next_time - now) or -1, ready, redelivered, buried, expired, set_aside }
