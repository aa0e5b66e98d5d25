-- Gives delayed, ready or buried jobs a new due time.
-- KEYS  tag, queue name
-- ARGV  for each job: id, when ("+" delay in ms, or "=" due in ms)
-- returns { { code per job }, { due ms per job, -1 = none }, ms to the earliest of them, or -1 }
-- keeps: a reserved job is left to its holder. The time at which a job expires moves along with its due time.
local now = now_ms()
local codes, dues, earliest = {}, {}, nil

local function reopen(id)
  local run = call('HGET', RUNS, id)
  if not run then return end
  run = unpack_run(run)
  if run.results == '' then return end
  reopen_results(run)
  call('HSET', RUNS, id, pack_run(run))
end

local function reschedule(id, due)
  local job = read_job(id)
  if not job then return NOT_FOUND, -1 end
  if state_of(id, job) == 'reserved' then return WRONG_STATE, -1 end
  check_keys(job)
  call('ZCARD', delay_key(job.topic, due))
  leave(id, job)
  set_due(id, job, due)
  delay_job(id, job, due)
  reopen(id)
  earliest = math.min(earliest or due, due)
  return OK, due
end

allow_when_full()
for at = 1, #ARGV, 2 do
  codes[#codes + 1], dues[#dues + 1] = safely(reschedule, ARGV[at], time_of(ARGV[at + 1], now))
end
return { codes, dues, earliest and math.max(0, earliest - now) or -1 }
