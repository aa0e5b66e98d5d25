-- What finish and delete do.
-- requires  _life

-- Ends jobs: `args` holds for each its id, its receipt ("" = whatever its state, "-" = one that nobody holds) and a message,
-- behind the sender.
-- Returns { { code per job }, { for each that ended the ms since it was handed out, -1 = it was not },
--           { topic, jobs that may go now, ... } }
local function end_jobs(args, state)
  local now, codes, held = now_ms(), {}, {}

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
    held[#held + 1] = time
    return OK
  end

  for at = 2, #args, 3 do codes[#codes + 1] = safely(end_one, args[at], args[at + 1], args[at + 2]) end
  return { codes, held, announce_arrivals(args[1]) }
end
