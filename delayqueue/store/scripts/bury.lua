-- Buries jobs: they are kept until somebody looks at them, and kicks or deletes them.
-- requires  _job
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = in any state), message, priority ("" = keep its own)
-- returns a code for each
-- keeps: with a receipt only the reservation that it names is buried.
local function bury(id, receipt, message, priority)
  local job = read_job(id)
  if not job then return NOT_FOUND end
  if receipt ~= '' and not holds(id, job, run_of(id), receipt) then return STALE_RECEIPT end
  local state = state_of(id, job)
  if state == 'buried' then return WRONG_STATE end
  check_keys(job)
  if priority ~= '' then call('HLEN', PRIORITIES) end
  local run = run_of(id)
  if state == 'reserved' or message ~= '' then
    if state == 'reserved' then note(run, message, holder_of(id, run.receipt)) else remark(run, message) end
    run.receipt = '-'
    call('HSET', RUNS, id, pack_run(run))
  end
  leave(id, job)
  if state == 'delayed' and run.attempt > 0 and job.due > now then  -- it waits for no retry any more: its expiry moves along from now on
    job.due = now
    call('HSET', JOBS, id, pack_record(job))
  end
  if priority ~= '' then set_priority(id, job, tonumber(priority)) end
  bury_job(id, job)
  if state == 'reserved' then tell('failed', job.topic, 1) end
  tell('buried', job.topic, 1)
  report_burial(id, job, run, message)
  return OK
end

return function(ARGV)
  return (for_each(bury, ARGV, 4))
end
