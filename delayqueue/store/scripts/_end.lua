-- Ends jobs, for finish and delete.
-- requires  _life

-- Ends jobs: `args` holds for each its id, its receipt ("" = in any state, "-" = unless it is reserved) and a message,
-- after the sender. The event of a job that was handed out has ms since then.
-- Returns { { code per job }, { topic, jobs that may go now, ... } }
local function end_jobs(args, state, event)
  local now, codes = now_ms(), {}

  local function end_one(id, receipt, message)
    local job = read_job(id)
    if not job then return receipt == '' and OK or NOT_FOUND end
    if receipt == '-' then
      if state_of(id, job) == 'reserved' then return WRONG_STATE end
    elseif receipt ~= '' and not holds(id, job, receipt) then
      return STALE_RECEIPT
    end
    local time = held_for(id, now)
    finish_job(id, job, state, message, now)
    tell(event, job.topic, 1, time)
    return OK
  end

  for at = 2, #args, 3 do codes[#codes + 1] = safely(end_one, args[at], args[at + 1], args[at + 2]) end
  return { codes, announce_arrivals(args[1]) }
end
