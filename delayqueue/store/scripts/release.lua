-- Gives reserved jobs back: the attempt has failed. They wait for `delay`, else as their retry schedule says, else for
-- `fallback`.
-- requires  _fail
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  sender, then for each job: id, receipt ("" = none), delay ms ("" = by the schedule), message,
--       fallback ms ("" = none: without a schedule at once), priority ("" = as it is)
-- returns { { code per job }, { due ms per job, -1 = buried, -2 = expired }, { topic, jobs made ready, ... },
--           ms to the earliest of the due times, or -1 }
-- keeps: only a reserved job is released; with a receipt only that reservation.
local now = now_ms()

return fail_each(ARGV, 6, now, function(at)
  local id, receipt, delay, message, fallback, priority = unpack(ARGV, at, at + 5)
  local job, code = held_job(id, receipt)
  if not job then return code end
  if priority ~= '' then set_priority(id, job, tonumber(priority)) end
  return OK, fail_job(id, job, message, now, tonumber(delay), tonumber(fallback)), job
end)
