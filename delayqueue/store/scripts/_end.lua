-- Ends jobs, for finish and delete: their records are dropped together.
-- requires  _job

local end_jobs
do
  local DROP_US = 4  -- the records of a job
  local gone, ranked  -- ids that this call has ended, in both ways: of all, and of those that go into sorted sets

  local function refusal(id, job, run, receipt)
    if receipt == '' then return nil end
    local created = string.match(receipt, '^%-(%d*)$')
    if not created then return not holds(id, job, run, receipt) and STALE_RECEIPT or nil end
    if created ~= '' and tonumber(created) ~= job.created then return NOT_FOUND end
    return state_of(id, job) == 'reserved' and WRONG_STATE or nil
  end

  local function end_one(id, receipt, message, state, event)
    local job = not gone[id] and read_job(id)
    if not job then return receipt == '' and OK or NOT_FOUND end
    local run = run_of(id)
    local code = refusal(id, job, run, receipt)
    if code then return code end
    end_job(id, job, state, message)
    gone[id], gone[#gone + 1] = true, id
    if is_for_set(job) then ranked[#ranked + 1] = id end
    count_work(DROP_US)
    tell(event, job.topic, 1, run.receipt ~= '-' and now - run.started or nil)
    return OK
  end

  -- Ends jobs: `args` holds for each its id, its receipt and a message. A receipt "" = in any state,
  -- "-" = unless it is reserved, "-1700000000000" = unless it is reserved or was not pushed at that time (ms). The event of a job
  -- that was handed out has ms since then.
  -- Returns a code for each.
  function end_jobs(args, state, event)
    count_commands(#args > 3)
    gone, ranked = {}, {}
    local codes = for_each(function(id, receipt, message) return end_one(id, receipt, message, state, event) end, args, 3)
    forget(gone, ranked)
    return codes
  end
end
