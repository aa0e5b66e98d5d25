-- Gives a job another due time.
-- requires  _life

local function reopen(id)
  local run = call('HGET', RUNS, id)
  if not run then return end
  run = unpack_run(run)
  if run.results == '' then return end
  reopen_results(run)
  call('HSET', RUNS, id, pack_run(run))
end

-- Gives a delayed, ready or buried job a new due time.
-- keeps: a reserved job stays with its holder. The time at which a job expires moves along with its due time.
local function reschedule(id, due)
  local job = read_job(id)
  if not job then return NOT_FOUND end
  if state_of(id, job) == 'reserved' then return WRONG_STATE end
  check_keys(job)
  call('ZCARD', delay_key(job.topic, due))
  leave(id, job)
  set_due(id, job, due)
  delay_job(id, job, due)
  reopen(id)
  return OK
end
