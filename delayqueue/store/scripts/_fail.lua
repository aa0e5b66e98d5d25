-- Fails attempts, for release and postpone.
-- requires  _job

-- Calls `fail` with the arguments of each job: it returns a code, what fail_job says, and the job. Returns a code for each, and
-- when it is due: ms, -1 = buried, -2 = expired.
local function fail_each(args, stride, fail)
  return for_each(function(...)
    local code, state, job = fail(...)
    if code ~= OK then return code, -1 end
    tell('released', job.topic, 1)
    if state == 'ready' then return OK, now end
    if state == 'buried' then return OK, -1 end
    if state == 'expired' then return OK, -2 end
    return OK, job.due
  end, args, stride)
end
