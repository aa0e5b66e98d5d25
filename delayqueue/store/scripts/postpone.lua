-- Gives reserved jobs back after some of their subscribers failed: they wait until the first of these may be called
-- again; where none may, they are buried.
-- requires  _life
-- flags  allow-oom
-- KEYS  tag, queue name
-- ARGV  sender, then for each job: id, receipt, message, names of its subscribers (JSON array)
-- returns { { code per job }, { due ms per job, -1 = buried, -2 = expired }, { topic, jobs made ready, ... },
--           ms to the earliest of the due times, or -1 }
-- keeps: the pauses of those that failed in this round begin together, now, so that equal schedules stay in step.
local sender = ARGV[1]
local now = now_ms()
local codes, dues, earliest = {}, {}, nil

-- Lets the pauses of this round begin now. Returns the first due time of the named subscribers, nil where there is none.
local function first_due(run, names)
  local counts, first, results = {}, nil, results_of(run)
  for _, name in ipairs(names) do counts[name] = true end
  for _, result in ipairs(results) do
    if result.due and result.ended >= run.started then result.due = now + result.due - result.ended end
    if result.due and counts[result.name] then first = math.min(first or result.due, result.due) end
  end
  if #results > 0 then run.results = cjson.encode(results) end
  return first
end

local function postpone(id, receipt, message, names)
  local job, code = held_job(id, receipt)
  if not job then return code, -1 end
  local run = unpack_run(call('HGET', RUNS, id))
  local first = first_due(run, names)
  call('HSET', RUNS, id, pack_run(run))
  local state = fail_job(id, job, message, now, first and math.max(0, first - now) or -1)
  if state == 'ready' then return OK, now end
  if state == 'buried' then return OK, -1 end
  if state == 'expired' then return OK, -2 end
  earliest = math.min(earliest or job.due, job.due)
  return OK, job.due
end

for at = 2, #ARGV, 4 do
  local code, due = safely(postpone, ARGV[at], ARGV[at + 1], ARGV[at + 2], cjson.decode(ARGV[at + 3]))
  codes[#codes + 1], dues[#dues + 1] = code, due
end
return { codes, dues, announce_arrivals(sender), earliest and earliest - now or -1 }
