-- Makes a job due at once.
-- requires  _job

-- Makes a job due and ready now if it is in one of the wanted states; its retry schedule starts over. body: replaces its own, nil = keep it.
-- keeps: the time at which a job expires moves along with its due time, so that a dead letter can outlive its first expiry.
local function kick(id, job, wanted, body)
  if not job then return NOT_FOUND end
  if not wanted[state_of(id, job)] then return WRONG_STATE end
  check_keys(job)
  leave(id, job)
  set_due(id, job, now)
  job.body = body
  if body and job.report then job.options = with_option(job.options, 'report', nil) end  -- it reports nothing any more
  call('HSET', JOBS, id, pack_record(job))
  local run = call('HGET', RUNS, id)
  if run then
    run = unpack_run(run)
    run.step = 0
    reopen_results(run)
    call('HSET', RUNS, id, pack_run(run))
  end
  make_ready(id, job)
  tell('kicked', job.topic, 1)
  return OK
end
