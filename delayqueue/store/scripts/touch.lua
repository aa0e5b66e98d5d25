-- Extends reservations: the deadline is `ttr` from now.
-- requires  _job
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = none), ttr ms ("" = the job's own)
-- returns a code for each, and its deadline in ms, -1 = none
-- keeps: only a reserved job is touched; with a receipt only that reservation.
local function touch(id, receipt, ttr)
  local job, code = held_job(id, receipt)
  if not job then return code, -1 end
  local deadline = now + (tonumber(ttr) or job.ttr)
  call('ZADD', reserved_key(job.topic), int(deadline), id)
  wake_at(job.topic, deadline)
  return OK, deadline
end

return function(ARGV)
  return for_each(touch, ARGV, 3)
end
