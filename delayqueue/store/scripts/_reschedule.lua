-- Gives a job another due time, another priority, or both.
-- requires  _job

local new_due, reschedule
do  -- limits the scope of the rest
  local function reopen(id, state)
    local run = call('HGET', RUNS, id)
    if not run then return end
    run = unpack_run(run)
    if state == 'buried' then run.step = 0 end
    reopen_results(run)
    call('HSET', RUNS, id, pack_run(run))
  end

  -- When the job is due then, nil if a job cannot be due at that time.
  -- when: a text, "+1500" or "=1700000000000" (see time_of); or "~-1500", 1.5 s before its own due time, but not before now; or "", its own
  function new_due(job, when)
    if when == '' then return job.own_due end
    if string.sub(when, 1, 1) ~= '~' then return time_of(when) end
    local due = math.max(now, job.own_due + tonumber(string.sub(when, 2)))
    -- a job that an import has staged has no time of its own so far
    if job.due <= MOST_DUE_MS and due <= MOST_DUE_MS then return due end
  end

  -- Gives a job another priority where it is.
  local function reprioritize(id, job, state, priority)
    if priority == priority_of(job) then return end
    if state == 'ready' then leave_waiting(id, job) end
    set_priority(id, job, priority)
    if state == 'ready' then add_ready(id, job) end
  end

  -- Gives a job in this state, delayed, ready or buried, a new due time (see new_due), and a new priority ("" = its own). Returns a code, and when it
  -- is due then. A job whose due time does not change stays what it is, and so does a ready one that is moved by less than would
  -- delay it. The retry schedule of a buried one starts over.
  -- keeps: a reserved job stays with its holder. The time at which a job expires moves along with its due time.
  function reschedule(id, job, state, when, priority)
    if state == 'reserved' then return WRONG_STATE end
    local due = new_due(job, when)
    if not due then return INVALID end
    check_keys(job)
    if priority ~= '' then
      call('HLEN', PRIORITIES)
      priority = tonumber(priority)
    end
    local stays = when == '' or state == 'ready' and string.sub(when, 1, 1) == '~' and due <= now
    if stays then
      if priority ~= '' then reprioritize(id, job, state, priority) end
      return OK, job.own_due
    end
    call('ZCARD', delay_key(job.topic, due))
    leave_waiting(id, job)
    if priority ~= '' then set_priority(id, job, priority) end
    set_due(id, job, due)
    delay_job(id, job, due)
    reopen(id, state)
    return OK, due
  end
end
