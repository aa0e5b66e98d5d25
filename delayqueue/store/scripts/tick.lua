-- Moves what is due to the ready lists: delayed jobs, and reservations whose TTR has expired; ends expired jobs and
-- drops kept results when their time is over.
-- requires  _limits
-- flags  allow-oom
-- waits  never
-- ARGV  limit (jobs moved at most in this call, shared among the due topics)
-- returns { redelivered, buried, expired, set aside, { topic and id of the first buried ones, ... }, { topic, id, attempt and worker
--         ("" = unknown) of the first ones whose TTR has expired, ... } }; the answer says until when nothing is due. The event of due jobs has ms from due to now of each topic's oldest one
-- keeps: the work is proportional to what is due; a topic that fails does not delay the others, nor does one with much to do, nor
--        do many topics that are due together: each call serves those that are due longest and those that have just become due.
local MOST_TOPICS = 50  -- even; about what a call comes to
local TOPIC_US = 10  -- what one takes, beside its commands
local SET_ASIDE_MS = 60000  -- a job or topic that a broken key blocks is tried again after this
local MOVED_US = 0.75  -- what a job that becomes ready takes
local RANKED_US = 6  -- what one for a sorted set takes more
local GROUP_US = 14  -- and one of a group
local NAMED = 20  -- jobs that are named, for the log and for what needs attention

-- Returns how many of them have a call.
local function enqueue(topic, ids, ranked)
  local listed, sets, grouped, called = {}, {}, {}, 0
  for _, id in ipairs(ids) do
    local job = ranked[id]
    if job then
      local key = set_of(job)
      local set = sets[key] or {}
      sets[key] = set
      set[#set + 1], set[#set + 2] = groups.score_of(job), rank_of(id, job)
      groups.add(grouped, job)
      if job.call then called = called + 1 end
    else
      listed[#listed + 1] = id
    end
  end
  if called > 0 then enter_called(topic) end
  for key, set in pairs(sets) do call('ZADD', key, unpack(set)) end
  groups.enter_all(grouped)
  if #listed > 0 then call('RPUSH', queue_key(topic), unpack(listed)) end
  return called
end

-- The end of a pause is a due time too. This and the one below return the time at which there is something to do.
local function end_pause(topic, settings)
  local until_ms = settings.paused_until
  if not until_ms or until_ms == 0 then return nil end
  if until_ms > now then return until_ms end
  settings.paused_until = nil
  save_settings(topic, settings)
  arrive_all(topic)
  return nil
end

-- The state of a call.
local redelivered, buried, expired, set_aside, named, timed_out
local knows_priorities
local allowed  -- the part of a call's work after which this topic has had its share

-- Sets the topic's next timer: the first of its times and of these. has_others: it has more than delayed jobs.
local function rearm(topic, has_others, ...)
  local first
  if has_others then first = first_time(topic) else first = delay_next(topic) end
  for _, time in pairs({ ... }) do first = math.min(first or time, time) end
  if first then call('ZADD', TIMERS, int(first), topic) else call('ZREM', TIMERS, topic) end
end

-- Processes the ids of a set that are due, one at least. Returns how many it processed. One that fails does not block
-- the others.
local function each_due(key, share, act)
  local looked = 0
  for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', '0', int(share))) do
    if looked > 0 and has_done_enough(allowed) then break end
    looked = looked + 1
    if not pcall(act, id) then
      call('ZADD', key, int(now + SET_ASIDE_MS), id)
      set_aside = set_aside + 1
    end
  end
  return looked
end

-- A reservation without a job of this topic is dropped; an unreadable record is set aside.
local function put_aside(topic, id, job)
  local has_record = job or call('HEXISTS', JOBS, id) == 1
  if has_record and not job then call('ZADD', BROKEN, int(now), id) end
  call('ZREM', reserved_key(topic), id)
  groups.doubt_all(topic)
  set_aside = set_aside + 1
  if not has_record then tell('lost', topic, 1) end
end

-- Expired reservations. This and the three below return how many ids they processed.
local function move_expired_reservations(topic, share)
  return each_due(reserved_key(topic), share, function(id)
    local job = read_job(id)
    if not job or job.topic ~= topic then return put_aside(topic, id, job) end
    local run = run_of(id)
    local worker = holder_of(id, run.receipt)
    local state = fail_job(id, job, run, 'ttr expired')
    if redelivered < NAMED then
      for _, each in ipairs({ topic, id, int(run.attempt), worker }) do timed_out[#timed_out + 1] = each end
    end
    if state == 'buried' then
      buried = buried + 1
      if buried <= NAMED then named[#named + 1], named[#named + 2] = topic, id end
    end
    if state == 'expired' then expired = expired + 1 end
    redelivered = redelivered + 1
    tell('timed_out', topic, 1)
  end)
end

-- The ids whose jobs go into a sorted set, with these; another job needs no look at its record. And for how many ids, from
-- the first on, that is known.
local function ranked_of(topic, ids)
  local jobs = {}
  if not knows_priorities or #ids == 0 then return jobs, #ids end
  for i, priority in ipairs(redis.pcall('HMGET', PRIORITIES, unpack(ids))) do  -- a key of the wrong type holds none
    if priority and i > 1 and has_done_enough(allowed) then return jobs, i - 1 end
    local job = priority and read_job(ids[i])
    if job and job.topic == topic and is_for_set(job) then
      count_work(RANKED_US + (job.group and GROUP_US or 0))
      jobs[ids[i]] = job
    end
  end
  return jobs, #ids
end

local function move_due(topic, share)
  local ids = delay_due(topic, share)
  local ranked, count = ranked_of(topic, ids)
  if count < #ids then ids = delay_due(topic, count) end
  count_work(#ids * MOVED_US)
  if #ids > 0 then
    local first = delay_next(topic)
    delay_check(topic)
    local called = enqueue(topic, ids, ranked)
    delay_drop_due(topic, ids)
    if called < #ids then arrive(topic, #ids - called) end
    if called > 0 then arrive(CALLS, called) end
    tell('due', topic, #ids, now - first)
  end
  return #ids
end

local function end_expired(topic, share)
  return each_due(expire_key(topic), share, function(id)
    local job = read_job(id)
    local state = job and state_of(id, job)
    if state == 'delayed' or state == 'ready' then
      finish_job(id, job, 'expired', '')
      expired = expired + 1
      tell('expired', topic, 1)
    end
    call('ZREM', expire_key(topic), id)
  end)
end

local function sweep_ended(topic, share)
  return each_due(done_key(topic), share, function(id)
    local ended = call('HGET', ENDED, id)
    if ended then forget_ended(id, ended) end
    call('ZREM', done_key(topic), id)
  end)
end

-- Jobs that the topic's rate has held back.
local function let_on(topic, settings)
  local limit = settings.limit
  local time = limit and next_through(topic, limit)
  if time and time <= now then arrive_all(topic) end
  return time and time > now and time or nil
end

local function tick(topic, share)
  local has_others = call('EXISTS', reserved_key(topic), expire_key(topic), done_key(topic)) > 0
  if has_others then
    share = share - move_expired_reservations(topic, share)
    share = share - end_expired(topic, share)
    share = share - sweep_ended(topic, share)
  end
  move_due(topic, share)
  local settings = settings_of(topic)
  rearm(topic, has_others, end_pause(topic, settings), let_on(topic, settings))
end

-- The topics to serve in this call, those that are due longest, so that each has its turn, by turns with those that became due
-- last, so that none waits behind many.
local function due_topics()
  local oldest, topics = call('ZRANGEBYSCORE', TIMERS, '-inf', int(now), 'LIMIT', '0', int(MOST_TOPICS)), {}
  local are_all = #oldest < MOST_TOPICS
  local latest = are_all and {} or call('ZREVRANGEBYSCORE', TIMERS, int(now), '-inf', 'LIMIT', '0', int(MOST_TOPICS / 2))
  for i = 1, math.ceil(#oldest / 2) do
    local last = #oldest + 1 - i
    topics[#topics + 1] = oldest[i]
    if last > i then topics[#topics + 1] = are_all and oldest[last] or latest[i] end
  end
  return topics
end

local function serve(topics, limit)
  local share = math.max(1, math.floor(limit / #topics))
  for i, topic in ipairs(topics) do
    if has_done_enough() then break end
    count_work(TOPIC_US)
    allowed = i / #topics
    if not pcall(tick, topic, share) then
      call('ZADD', TIMERS, int(now + SET_ASIDE_MS), topic)
      set_aside = set_aside + 1
    end
  end
end

return function(ARGV)
  redelivered, buried, expired, set_aside, named, timed_out = 0, 0, 0, 0, {}, {}
  earliest = first_of(TIMERS)
  if not earliest or earliest > now then return { 0, 0, 0, 0, {}, {} } end  -- most ticks
  knows_priorities = has_priorities()
  serve(due_topics(), tonumber(ARGV[1]))
  earliest = first_of(TIMERS)  -- of all topics
  return { redelivered, buried, expired, set_aside, named, timed_out }
end
