-- Extends reservations: the deadline is `ttr` from now. Keeps what their holders tell of their progress.
-- requires  _job
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = none), ttr ms ("" = the job's own), hundredths of a percent ("" = not told), "=" and a
--       message; "" = nothing is told
-- returns a code for each, and its deadline in ms, -1 = none
-- keeps: only a reserved job is touched; with a receipt only that reservation.
local function touch(id, receipt, ttr, progress, message)
  local job, run = held_job(id, receipt)
  if not job then return run, -1 end
  if message ~= '' then
    note_progress(run, tonumber(progress), string.sub(message, 2))
    call('HSET', RUNS, id, pack_run(run))
  end
  local deadline = now + (tonumber(ttr) or job.ttr)
  call('ZADD', reserved_key(job.topic), int(deadline), id)
  wake_at(job.topic, deadline)
  return OK, deadline
end

return function(ARGV)
  return for_each(touch, ARGV, 5)
end
