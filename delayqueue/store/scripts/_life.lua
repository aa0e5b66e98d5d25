-- The steps of a job's life that several verbs share. Put after the prelude and the delay index.

-- Where a job with a record stands.
local function state_of(id, job)
  if call('ZSCORE', reserved_key(job.topic), id) then return 'reserved' end
  if delay_has(job.topic, { id }, { job.due })[1] then return 'delayed' end
  if call('ZSCORE', buried_key(job.topic), id) then return 'buried' end
  return 'ready'
end

-- Takes the id out of the place where it stands; its record stays. A ready id stays in its list as a ghost, which is
-- counted, since taking it out would cost a walk through the list; pop and sweep skip it.
local function leave(id, job)
  if call('ZREM', reserved_key(job.topic), id) == 1 then return 'reserved' end
  if delay_remove(job.topic, id, job.due) then return 'delayed' end
  if call('ZREM', buried_key(job.topic), id) == 1 then return 'buried' end
  call('HINCRBY', GHOSTS, job.topic, 1)
  return 'ready'
end

-- Whether the receipt names the job's present reservation.
local function holds(id, job, receipt)
  return unpack_run(call('HGET', RUNS, id)).receipt == receipt and call('ZSCORE', reserved_key(job.topic), id) ~= false
end

local function untag(id, job)
  for _, name in ipairs(options_of(job).tags or {}) do call('SREM', tag_key(name), id) end
end

-- Drops everything that is kept of a live job, but for its place.
local function forget(id, job)
  call('HDEL', JOBS, id)
  call('HDEL', RUNS, id)
  if job.expire > 0 then call('ZREM', expire_key(job.topic), id) end
end

-- Ends a job, wherever it is. With retain its record is kept in `ended`:
-- "state ended message_length run_length\n" message run record
local function finish_job(id, job, state, message, now)
  if job.retain > 0 then
    local run = call('HGET', RUNS, id) or ''
    local head = state .. ' ' .. int(now) .. ' ' .. #message .. ' ' .. #run .. '\n'
    call('HSET', ENDED, id, head .. message .. run .. pack_record(job))
    call('ZADD', done_key(job.topic), int(now + job.retain), id)
    wake_at(job.topic, now + job.retain)
  else
    untag(id, job)
  end
  leave(id, job)
  forget(id, job)
end

-- Drops the kept record of a job that ended, at its time or because its id is pushed again.
local function forget_ended(id, ended)
  local message_length, run_length, at = string.match(ended, '^%a+ %d+ (%d+) (%d+)\n()')
  local job = message_length and unpack_record(string.sub(ended, at + message_length + run_length))
  call('HDEL', ENDED, id)
  if not job then return end
  call('ZREM', done_key(job.topic), id)
  untag(id, job)
end

-- Puts a job, which must stand nowhere else, among the delayed ones; its record gets the new due time.
local function delay_job(id, job, due)
  job.due = due
  call('HSET', JOBS, id, pack_record(job))
  delay_add(job.topic, { int(due), id })
  wake_at(job.topic, due)
end

local function bury_job(id, job, now) call('ZADD', buried_key(job.topic), int(now), id) end

-- The reservation of a job has failed: notes it, and puts the job where `delay` or its schedule says.
-- Returns 'ready', 'delayed' or 'buried'; 'expired' where nobody needs it any more.
-- keeps: the id is added to its new place before it leaves `reserved`.
local function fail_job(id, job, message, now, delay)
  local run = unpack_run(call('HGET', RUNS, id))
  local schedule = options_of(job).retry
  note(run, message, now)
  run.step, run.receipt = run.step + 1, '-'
  call('HSET', RUNS, id, pack_run(run))
  if job.expire > 0 and job.expire <= now then
    finish_job(id, job, 'expired', message, now)
    return 'expired'
  end
  if not delay and schedule then delay = schedule[run.step] or -1 end
  local state
  if delay == -1 then
    bury_job(id, job, now)
    state = 'buried'
  elseif delay and delay > 0 then
    delay_job(id, job, now + delay)
    state = 'delayed'
  else
    call('RPUSH', queue_key(job.topic), id)
    state = 'ready'
  end
  call('ZREM', reserved_key(job.topic), id)
  return state
end
