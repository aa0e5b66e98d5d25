-- Reserves ready, delayed or buried jobs by their ids, even of a topic that is paused or has reached its
-- limits. Jobs with a call are not for workers.
-- requires  _limits
-- flags  allow-oom
-- waits  all
-- needs  replicas
-- ARGV  for each job its id and the receipt that it gets
-- returns for each of the first ids { OK, record, attempt, 1 if it was buried, else 0 }, or a code
-- keeps: a client that is told of a job has its reservation.

local function reserve(id, receipt)
  local job = read_job(id)
  if not job or job.call then return NOT_FOUND end
  local state = state_of(id, job)
  if state == 'reserved' then return WRONG_STATE end
  if state == 'buried' and job.expire > 0 then  -- as if it were kicked: it may have outlived its time
    set_due(id, job, now)
    call('HSET', JOBS, id, pack_record(job))
  end
  check_keys(job)
  if state ~= 'buried' and job.expire > 0 and job.expire <= now then  -- the timer has not processed it yet
    finish_job(id, job, 'expired', '')
    tell('expired', job.topic, 1)
    return NOT_FOUND
  end
  local run = run_of(id)
  run.attempt, run.receipt, run.started = run.attempt + 1, receipt, now
  if job.group then call('ZADD', groups.hand_key(job.topic), '0', groups.hand_of(id, job.group)) end
  call('ZADD', reserved_key(job.topic), int(now + job.ttr), id)
  call('HSET', RUNS, id, pack_run(run))
  wake_at(job.topic, now + job.ttr)
  leave_waiting(id, job)
  local limit = settings_of(job.topic).limit
  if limit then count_through(job.topic, limit, 1) end
  tell('delivered', job.topic, 1)
  return { OK, pack_record(job), run.attempt, state == 'buried' and 1 or 0 }
end

return function(ARGV)
  return (for_each(reserve, ARGV, 2))
end
