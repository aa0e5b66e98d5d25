-- Gives reserved jobs back: the attempt has failed. They wait for `delay`, else as their retry schedule says, else for
-- `fallback`.
-- requires  _life
-- flags  allow-oom
-- KEYS  tag, queue name
-- ARGV  sender, then for each job: id, receipt ("" = none), delay ms ("" = by the schedule), message,
--       fallback ms ("" = none: without a schedule at once)
-- returns { { code per job }, { due ms per job, -1 = buried, -2 = expired }, { topic, jobs made ready, ... },
--           ms to the earliest of the due times, or -1 }
-- keeps: only a reserved job is released; with a receipt only that reservation.
local sender = ARGV[1]
local now = now_ms()
local codes, dues, earliest = {}, {}, nil

local function release(id, receipt, delay, message, fallback)
  local job, code = held_job(id, receipt)
  if not job then return code, -1 end
  local state = fail_job(id, job, message, now, tonumber(delay), tonumber(fallback))
  if state == 'ready' then return OK, now end
  if state == 'buried' then return OK, -1 end
  if state == 'expired' then return OK, -2 end
  earliest = math.min(earliest or job.due, job.due)
  return OK, job.due
end

for at = 2, #ARGV, 5 do
  local code, due = safely(release, unpack(ARGV, at, at + 4))
  codes[#codes + 1], dues[#dues + 1] = code, due
end
return { codes, dues, announce_arrivals(sender), earliest and earliest - now or -1 }
