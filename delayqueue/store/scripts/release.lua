-- Gives reserved jobs back: the attempt has failed. They wait for `delay`, else as their retry schedule says, else as
-- `schedule` says, else for `fallback`. The end of `schedule` buries a job without its own, even with a `delay`.
-- requires  _fail
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = none), delay ms ("" = by the schedule), message,
--       fallback ms ("" = none: at once without a schedule), priority ("" = keep its own),
--       schedule ("" = none, else ",1000,5000,": the delays in ms)
-- returns a code for each, and when it is due: ms, -1 = buried, -2 = expired
-- keeps: only a reserved job is released; with a receipt only that reservation.
local function delays(schedule)
  if schedule == '' then return nil end
  local found = {}
  for delay in string.gmatch(schedule, '%d+') do found[#found + 1] = tonumber(delay) end
  return found
end

return function(ARGV)
  return fail_each(ARGV, 7, function(id, receipt, delay, message, fallback, priority, schedule)
    local job, run = held_job(id, receipt)
    if not job then return run end
    if priority ~= '' then set_priority(id, job, tonumber(priority)) end
    local retry = not job.retry and delays(schedule)
    return OK, fail_job(id, job, run, message, tonumber(delay), tonumber(fallback), retry), job
  end)
end
