-- The steps of a job's life that several verbs share.
-- requires  _call, _record, _run, _index, _ready, _beside, _holders

-- A topic's settings: paused_until (ms; 0 = until resumed), limit (limit.lua). Unreadable settings count as none.
local function settings_of(topic, written)
  written = written or call('HGET', TOPICS, topic)
  if not written or written == '' then return {} end
  local readable, settings = pcall(cjson.decode, written)
  return readable and type(settings) == 'table' and settings or {}
end

local function save_settings(topic, settings)
  call('HSET', TOPICS, topic, next(settings) and cjson.encode(settings) or '')
end

-- Raises if the keys of a job's tags, priority, call and group have the wrong type.
local function check_labels(job)
  if is_for_set(job) and not sound[PRIORITIES] then
    call('HLEN', PRIORITIES)
    sound[PRIORITIES] = true
  end
  if job.call then call('ZCARD', CALLED_TOPICS) end
  if job.group then groups.check(job) end
  for _, name in ipairs(job.tags or {}) do call('SCARD', tag_key(name)) end
end

-- Raises if a key that a job needs has the wrong type: a verb stops here, before anything has changed.
local function check_keys(job)
  local topic = job.topic
  local reserved, delayed = reserved_key(topic), delay_key(topic, job.due)
  if not sound[reserved] then
    call('HLEN', RUNS)
    call('HLEN', GHOSTS)
    call('LLEN', queue_key(topic))
    delay_check(topic)
    local keys = { reserved, buried_key(topic), expire_key(topic), done_key(topic), ranked_key(topic), called_key(topic) }
    if call('EXISTS', unpack(keys)) > 0 then  -- many topics have none of them
      for _, key in ipairs(keys) do call('ZCARD', key) end
    end
    sound[reserved] = true
  end
  if not sound[delayed] then
    call('ZCARD', delayed)
    sound[delayed] = true
  end
  check_labels(job)
end

-- The lowest score, or nil.
local function first_of(key) return tonumber(call('ZRANGE', key, '0', '0', 'WITHSCORES')[2]) end

local function is_paused(settings)
  local until_ms = settings.paused_until
  return until_ms ~= nil and (until_ms == 0 or until_ms > now)
end

local function read_job(id)
  local record = call('HGET', JOBS, id)
  local job = record and unpack_record(record)
  if job and is_hidden(job.topic) then return nil end
  return job
end

-- The state of a job with a record.
local function state_of(id, job)
  if call('ZSCORE', reserved_key(job.topic), id) then return 'reserved' end
  if delay_has(job.topic, { id }, { job.due })[1] then return 'delayed' end
  if call('ZSCORE', buried_key(job.topic), id) then return 'buried' end
  return 'ready'
end

-- Whether the topic has jobs that have not ended, or ghosts of some.
local function has_jobs(topic)
  if delay_count(topic) > 0 then return true end
  return has_ready(topic) or call('EXISTS', reserved_key(topic), buried_key(topic)) > 0
end

-- The earliest time at which the timer has to check the topic, or nil. The end of a pause is one too: settings_of.
local function first_time(topic)
  local first = delay_next(topic)
  for _, key in ipairs({ reserved_key(topic), expire_key(topic), done_key(topic) }) do
    local time = first_of(key)
    if time and (not first or time < first) then first = time end
  end
  return first
end

-- Of the ghosts that have left the list, `missing` have no record. That of a job that ended is gone, too, but its ghost was counted:
-- if more have left than were counted, the store has dropped records.
local function count_ghosts(topic, change, missing)
  local left = call('HINCRBY', GHOSTS, topic, change)
  if left <= 0 then call('HDEL', GHOSTS, topic) end
  local lost = math.min(-left, missing or 0)
  if lost > 0 then tell('lost', topic, lost) end
end

-- Takes ghosts out of the window of `count` ids at `place` in a ready list: ids whose job is no longer ready, and
-- a second entry of one that is. Returns how many, and how many entries it has looked at.
local function drop_ghosts(topic, place, count)
  if count == 0 then return 0, 0 end
  local queue, seen, dropped, looked, missing = queue_key(topic), {}, 0, 0, 0
  local middle = call('LLEN', queue) / 2
  for i, id in ipairs(call('LRANGE', queue, place, place + count - 1)) do
    if has_done_enough(2) then break end  -- what the verb did to the same jobs before must not prevent this
    local job = read_job(id)
    if seen[id] or not (job and job.topic == topic and state_of(id, job) == 'ready') or is_ranked(id, job) then
      call('LSET', queue, place + i - 1, '')  -- no id is empty
      dropped = dropped + 1
      if not job and call('HEXISTS', JOBS, id) == 0 then missing = missing + 1 end
    end
    seen[id], looked = true, i
  end
  if dropped > 0 then
    call('LREM', queue, place < middle and dropped or -dropped, '')  -- it walks from one end to the place
    count_removed(topic, dropped)
    count_ghosts(topic, -dropped, missing)
  end
  return dropped, looked
end

local function arrive(topic, count) arrivals[topic] = (arrivals[topic] or 0) + (count or 1) end

-- Lets all ready jobs of a paused topic go.
local function arrive_all(topic)
  local ready, called = count_ready(topic)
  if ready > (arrivals[topic] or 0) then arrivals[topic] = ready end
  if called > 0 then
    call('ZADD', CALLED_TOPICS, int(now), topic)
    arrive(CALLS, called)
  end
end

local unreserve
do  -- limits the scope of the rest
  -- A group stands in line, and polls are told that it may have some more jobs.
  function groups.let_go(lane, topic, group, count)
    groups.enter(lane, topic, group)
    if lane ~= '' then call('ZADD', CALLED_TOPICS, int(now), topic) end
    arrive(lane == '' and topic or CALLS, count)
  end

  -- So many more jobs of a group may be handed out, if it has any. It need not be held: it can have come back to its line since then.
  function groups.let_more_go(topic, group, count)
    for _, lane in ipairs(groups.LANES) do
      if groups.has(lane, topic, group) then groups.let_go(lane, topic, group, count) end
    end
  end

  -- Lets pop look at all held groups of a topic again, where nobody knows which of them may go on.
  function groups.doubt_all(topic)
    local settings = settings_of(topic)
    if not settings.limit or not settings.limit.changed then return end
    settings.limit.changed = now
    save_settings(topic, settings)
    arrive_all(topic)
  end

  -- If a topic limits how many jobs are reserved at once, in all or of a group, the end of a reservation lets others go. A broken key
  -- must not prevent the end of a job; here and below.
  function let_others_go(topic, its)
    if #its.hands > 0 then redis.pcall('ZREM', groups.hand_key(topic), unpack(its.hands)) end
    local limit = settings_of(topic).limit
    if limit and limit.concurrency then arrive_all(topic) end
    if not groups.are_limited(limit) then return end
    for group, count in pairs(its.counts) do groups.let_more_go(topic, group, limit.group_order and 1 or count) end
  end

  local NO_GROUPS = { hands = {}, counts = {} }  -- entries to drop; by group, how many more jobs may go on

  -- hand: the entry of one that was in hand; nil = it was not.
  local function free(job, hand)
    local topic, group = job.topic, job.group
    freed[topic] = freed[topic] or NO_GROUPS
    if not group then return end
    if freed[topic] == NO_GROUPS then freed[topic] = { hands = {}, counts = {} } end
    local its = freed[topic]
    its.counts[group] = (its.counts[group] or 0) + 1
    its.hands[#its.hands + 1] = hand
  end

  function unreserve(id, job)
    if call('ZREM', reserved_key(job.topic), id) == 0 then return false end
    free(job, job.group and groups.hand_of(id, job.group))
    return true
  end

  -- The job was not done when its turn came: where the order of a group is strict, it comes before the others, which wait for it.
  function groups.hold_up(id, job)
    local limit = job.group and settings_of(job.topic).limit
    if not limit or not limit.group_order then return end
    redis.pcall('HSETNX', groups.first_key(job.topic), job.group, id)
    firsts[job.topic] = true
  end

  local function has_firsts(topic)
    if firsts[topic] == nil then firsts[topic] = call('EXISTS', groups.first_key(topic)) == 1 end
    return firsts[topic]
  end

  -- Whether the others of its group wait for the job.
  function groups.is_first(id, job)
    return job.group and has_firsts(job.topic) and redis.pcall('HGET', groups.first_key(job.topic), job.group) == id
  end

  -- The group no longer waits for the job.
  function groups.let_pass(id, job)
    if not groups.is_first(id, job) then return end
    redis.pcall('HDEL', groups.first_key(job.topic), job.group)
    free(job)
  end
end

-- Removes the id of a job that is not reserved from its index; its record stays. In the list of ready jobs the id
-- stays as a ghost, which is counted, because removing it would take a walk through the list; pop and sweep skip it.
local function leave_waiting(id, job)
  if delay_remove(job.topic, id, job.due) then return 'delayed' end
  if call('ZREM', buried_key(job.topic), id) == 1 then return 'buried' end
  local key = set_of(job)  -- a job that an older version of the server made ready is in the list all the same
  if not key or call('ZREM', key, rank_of(id, job)) == 0 then count_ghosts(job.topic, 1) end
  if job.group then pcall(groups.leave, groups.lane_of(job), job.topic, job.group) end
  return 'ready'
end

-- Removes the id of a job in any state from its index; its record stays. Returns the state.
local function leave(id, job)
  if unreserve(id, job) then return 'reserved' end
  return leave_waiting(id, job)
end

local function run_of(id) return unpack_run(call('HGET', RUNS, id)) end

-- Whether the receipt belongs to the job's present reservation.
local function holds(id, job, run, receipt)
  return run.receipt == receipt and call('ZSCORE', reserved_key(job.topic), id) ~= false
end

-- The job that a verb for reserved jobs acts on, and its run; or nil and the code that says why not. receipt "" = none was given.
local function held_job(id, receipt)
  local job = read_job(id)
  if not job then return nil, NOT_FOUND end
  local run = run_of(id)
  if receipt ~= '' then
    if not holds(id, job, run, receipt) then return nil, STALE_RECEIPT end
  elseif not call('ZSCORE', reserved_key(job.topic), id) then
    return nil, WRONG_STATE
  end
  return job, run
end

-- A key of the wrong type holds no jobs of the tag.
local function untag(id, job)
  for _, name in ipairs(job.tags or {}) do pcall(call, 'SREM', tag_key(name), id) end
end

-- The timer ends the job when it expires, if it does.
local function enter_expiry(id, job)
  if job.expire == 0 then return end
  call('ZADD', expire_key(job.topic), int(job.expire), id)
  wake_at(job.topic, job.expire)
end

-- Enters a live job wherever it is found beside its record and its place.
local function enter(id, job)
  if is_for_set(job) then note_priority(id, job) end
  for _, name in ipairs(job.tags or {}) do call('SADD', tag_key(name), id) end
  enter_expiry(id, job)
  call('HSETNX', TOPICS, job.topic, '')
end

-- Drops the records of live jobs; `ranked`: the ids of those that go into sorted sets. A key of the wrong type has no priorities.
local function forget(ids, ranked)
  if #ids == 0 then return end
  call('HDEL', RUNS, unpack(ids))
  if #ranked > 0 then redis.pcall('HDEL', PRIORITIES, unpack(ranked)) end
  call('HDEL', JOBS, unpack(ids))
end

-- Announces the end of a job, or its burial, if somebody waits for it (await_end.lua): most calls only ask whether anybody waits at
-- all. A count of 0 tells it from jobs that became ready. An end must not fail for this, so a waiter may have to look by itself.
local function tell_end(id)
  if has_awaited == nil then has_awaited = call('EXISTS', AWAITED) == 1 end
  if has_awaited and redis.pcall('ZREM', AWAITED, id) == 1 then pcall(announce, 0, id) end
end

-- Ends a job in any state, but for its records, which the verb drops. With retain its record is kept in `ended`:
-- "state ended message_length run_length\n" message run record
local function end_job(id, job, state, message)
  if job.retain > 0 then
    local run = call('HGET', RUNS, id) or ''
    local head = state .. ' ' .. int(now) .. ' ' .. #message .. ' ' .. #run .. '\n'
    call('ZADD', done_key(job.topic), int(now + job.retain), id)
    wake_at(job.topic, now + job.retain)
    call('HSET', ENDED, id, head .. message .. run .. pack_record(job))
  else
    untag(id, job)
  end
  leave(id, job)
  groups.let_pass(id, job)
  if job.expire > 0 then call('ZREM', expire_key(job.topic), id) end
  tell_end(id)
end

local function finish_job(id, job, state, message)
  end_job(id, job, state, message)
  forget({ id }, is_for_set(job) and { id } or {})
end

-- Where the message, the run and the job begin in the kept record of a job that ended; nil if it is unreadable.
local function parts_of_ended(ended)
  local message_length, run_length, at = string.match(ended, '^%a+ %d+ (%d+) (%d+)\n()')
  if at then return at, at + message_length, at + message_length + run_length end
end

-- The job in it; nil if it is unreadable.
local function job_of_ended(ended)
  local _, _, at = parts_of_ended(ended)
  return at and unpack_record(ended, at) or nil
end

local function is_hidden_ended(ended)
  if not scope then return false end
  local job = job_of_ended(ended)
  return not job or is_hidden(job.topic)
end

-- Drops the kept record of a job that ended, when its time has come, or because its id is pushed again.
local function forget_ended(id, ended)
  local job = job_of_ended(ended)
  call('HDEL', ENDED, id)
  if not job then return end
  call('ZREM', done_key(job.topic), id)
  untag(id, job)
end

-- Puts a job, which must be in no other place, among the delayed ones; its record gets the new due time.
local function delay_job(id, job, due)
  job.due = due
  call('HSET', JOBS, id, pack_record(job))
  delay_add(job.topic, { due, id })
  wake_at(job.topic, due)
end

-- Gives a job, which is in no place, a new due time on a client's request; its record is yet to be written. The time at which
-- it expires moves along, but not closer once the job was handed out: then its due time may be that of a retry.
local function set_due(id, job, due)
  local LAST_MS = 90 ^ 7 - 1  -- that a record can hold
  if job.expire > 0 then
    local shift = due - job.own_due
    if shift > 0 or run_of(id).attempt == 0 then job.expire = math.min(job.expire + shift, LAST_MS) end
    enter_expiry(id, job)
  end
  job.due = due
end

-- Gives a job, which is not ready, another priority.
local function set_priority(id, job, priority)
  job.priority = priority ~= USUAL_PRIORITY and priority or nil
  job.options = with_option(job.options, 'priority', job.priority and int(priority))
  call('HSET', JOBS, id, pack_record(job))
  note_priority(id, job)
end

local function bury_job(id, job)
  call('ZADD', buried_key(job.topic), int(now), id)
  groups.let_pass(id, job)
  tell_end(id)
end

local function make_ready(id, job)
  add_ready(id, job)
  arrive(asked_as(job))
end

local leads_back, report_burial
do  -- limits the scope of the rest
  local function buried_to(topic)
    local limit = settings_of(topic).limit
    return limit and limit.buried_to
  end

  -- Whether dead letters of one topic, reported to `to`, could come back to it, within MOST_STEPS: no report is handed on more often.
  local MOST_STEPS = 100
  function leads_back(topic, to)
    local passed = {}
    for _ = 1, MOST_STEPS do
      if not to or passed[to] then return false end
      if to == topic then return true end
      passed[to] = true
      to = buried_to(to)
    end
    return false
  end

  local REPORT_TTR_MS = 60000
  local REPORT_ID = 'dead-letter:'  -- and digits
  local REPORT_BYTES_PER_US = 256  -- of a report that is made and written

  -- Reports a job that has just been buried, if its topic has `buried_to`: pushes a job to that topic. A failure must not prevent the burial.
  -- A report that is buried is handed on as it is: to quote the quoted body at each step would let it grow without bound.
  -- Which jobs are reports, and how often one was handed on, is told by `report` of its options, which no client can write.
  -- keeps: the new job is in this bucket, also when the number of buckets changes.
  function report_burial(id, job, run, reason)
    pcall(function()
      local topic = buried_to(job.topic)
      if not topic or leads_back(job.topic, topic) then return end  -- whoever set it so, no job goes in circles
      local step = (job.report or 0) + 1
      if step > MOST_STEPS then return end
      call('LLEN', queue_key(topic))  -- raises if it has the wrong type: nothing has changed then
      local body = body_of(job)
      if not job.report then
        local head = '{"id":' .. cjson.encode(id) .. ',"topic":' .. cjson.encode(job.topic) .. ',"reason":' .. cjson.encode(reason)
        if job.group then head = head .. ',"group":' .. cjson.encode(job.group) end
        -- joined once: string.format copies a long text several times
        body = head .. ',"attempts":' .. int(run.attempt) .. ',"body":' .. cjson.encode(body) .. '}'
      end
      count_work(#body / REPORT_BYTES_PER_US)
      local report = { topic = topic, due = now, created = now, ttr = REPORT_TTR_MS, expire = 0, retain = 0, options = '{"report":' .. step .. '}', body = body }
      local made, name, braces = now, nil, string.match(id, '^{[^}]+}') or ''  -- they decide the bucket, too
      repeat
        name, made = id_beside(braces .. REPORT_ID .. int(made) .. ':', id), made + 1
      until call('HEXISTS', ENDED, name) == 0 and call('HSETNX', JOBS, name, pack_record(report)) == 1
      call('HSETNX', TOPICS, topic, '')
      make_ready(name, report)
      tell('pushed', topic, 1)
    end)
  end
end

-- An unreadable one counts as none: one job must not stop a call for many.
local function results_of(run)
  if run.results == '' then return {} end
  local readable, results = pcall(cjson.decode, run.results)
  return readable and type(results) == 'table' and results or {}
end

-- Runs a verb for each job of a call, whose arguments are `stride` of `args`, from `first` (1) on. Returns what it returns for each: a
-- code, or what it has to tell, and a time if it has any. A broken key that only one job needs is an error of that job alone: the
-- others are done, and must be reported. When the call has done enough, that was the last one.
local function for_each(verb, args, stride, first)
  local results, times = {}, {}
  for at = first or 1, #args, stride do
    if has_done_enough() then break end
    local done, result, time = pcall(verb, unpack(args, at, at + stride - 1))
    if not done then result, time = UNAVAILABLE, -1 end
    results[#results + 1], times[#times + 1] = result, time
  end
  return results, times
end

-- Gives a job another chance: subscribers that failed are called again, and their retry schedules start over.
local function reopen_results(run)
  if run.results == '' then return end
  local results = results_of(run)
  for _, result in ipairs(results) do
    if not result.ok then result.attempts, result.due = 0, 0 end
  end
  run.results = cjson.encode(results)
end

-- Whether a job's reservation began before it was due (reserve.lua), and its time has not come since.
local function is_early(job, run) return job.due > now and job.due > run.started end

-- Notes that a job's reservation has failed, and puts the job where `delay` says, else its schedule, else `fallback`; unless
-- `delay` says so, not before it is due. `retry`, for a job without a schedule, replaces the fallback; at its end the job
-- is buried, whatever `delay` says.
-- Returns 'ready', 'delayed' or 'buried'; 'expired' if its time is over.
-- keeps: the id is added to its new place before it leaves `reserved`, and holds its receipt until then.
local function fail_job(id, job, run, message, delay, fallback, retry)
  note(run, message, holder_of(id, run.receipt))
  run.step, run.receipt = run.step + 1, '-'
  if job.expire > 0 and job.expire <= now then
    call('HSET', RUNS, id, pack_run(run))
    finish_job(id, job, 'expired', message)
    tell('failed', job.topic, 1)
    tell('expired', job.topic, 1)
    return 'expired'
  end
  local earliest = not delay and is_early(job, run) and job.due or now
  if not delay and job.retry then delay = job.retry[run.step] or -1 end
  if retry then delay = retry[run.step] and (delay or retry[run.step]) or -1 end
  delay = delay or fallback or 0
  local due, state = math.max(earliest, now + delay), nil
  if delay == -1 then
    bury_job(id, job)
    state = 'buried'
  elseif due > now then
    delay_job(id, job, due)
    state = 'delayed'
  else
    if is_for_set(job) or job.due > now then  -- after its equals; or it is due now because the client says so
      job.due = now
      call('HSET', JOBS, id, pack_record(job))
    end
    make_ready(id, job)
    state = 'ready'
  end
  if state ~= 'buried' then groups.hold_up(id, job) end
  call('HSET', RUNS, id, pack_run(run))
  unreserve(id, job)
  tell('failed', job.topic, 1)
  if state == 'buried' then
    tell('buried', job.topic, 1)
    report_burial(id, job, run, message)
  end
  return state
end
