-- Fails attempts, for release and postpone.
-- requires  _life

-- Calls `fail(at)` for each job of a call, whose arguments begin at `at`: it returns a code, what fail_job says, and
-- the job. Returns { { code per job }, { due ms per job, -1 = buried, -2 = expired }, { topic, jobs made ready, ... },
--                    ms to the earliest of the due times, or -1 }
local function fail_each(args, stride, now, fail)
  local codes, dues, earliest = {}, {}, nil

  local function fail_one(at)
    local code, state, job = fail(at)
    if code ~= OK then return code, -1 end
    tell('released', job.topic, 1)
    if state == 'ready' then return OK, now end
    if state == 'buried' then return OK, -1 end
    if state == 'expired' then return OK, -2 end
    earliest = math.min(earliest or job.due, job.due)
    return OK, job.due
  end

  for at = 2, #args, stride do
    local code, due = safely(fail_one, at)
    codes[#codes + 1], dues[#dues + 1] = code, due
  end
  return { codes, dues, announce_arrivals(args[1]), earliest and earliest - now or -1 }
end
