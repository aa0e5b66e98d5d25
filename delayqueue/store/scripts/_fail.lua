-- Fails attempts, for release and postpone.
-- requires  _job

-- Calls `fail(at)` for each job of a call, whose arguments begin at `at`: it returns a code, what fail_job says, and
-- the job. Returns a code for each, and when it is due: ms, -1 = buried, -2 = expired.
local function fail_each(args, stride, fail)
  local codes, dues = {}, {}

  local function fail_one(at)
    local code, state, job = fail(at)
    if code ~= OK then return code, -1 end
    tell('released', job.topic, 1)
    if state == 'ready' then return OK, now end
    if state == 'buried' then return OK, -1 end
    if state == 'expired' then return OK, -2 end
    return OK, job.due
  end

  for at = 1, #args, stride do
    local code, due = safely(fail_one, at)
    codes[#codes + 1], dues[#dues + 1] = code, due
  end
  return codes, dues
end
