-- Hands out delayed and ready jobs and removes them: each to one caller only.
-- requires  _job, _reads
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, first and last due ms (inclusive), ids
-- returns for each of the ids, from the first on, until the answer is full or the call has done enough: { record, run or "", 1 if the
--         others of its group waited for it, else 0 }, NOT_FOUND if it can no longer be taken, or UNAVAILABLE
-- keeps: a job in the answer is gone from the store, its kept record (retain) says finished.
local FIRST_ID = 4

return function(ARGV)
  local topic, first, last = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
  local results, count, ready = {}, 0, 0  -- jobs that were taken, and those of them that were ready

  local function take(id)
    local job = read_job(id)
    if not job or job.topic ~= topic or job.due < first or job.due > last then return NOT_FOUND end
    local run, state = call('HGET', RUNS, id) or '', state_of(id, job)
    if state ~= 'ready' and state ~= 'delayed' then return NOT_FOUND end
    local was_first = groups.is_first(id, job)
    if not pcall(finish_job, id, job, 'finished', '') then return UNAVAILABLE end  -- a broken key: it stays
    count = count + 1
    if state == 'ready' then ready = ready + 1 end
    tell('taken', topic, 1)
    return { job.record, run, was_first and 1 or 0 }
  end

  local function take_all()
    for at = FIRST_ID, #ARGV do
      local id = ARGV[at]
      if has_done_enough() or not may_read(bytes_of(id)) then break end
      results[#results + 1] = take(id)
    end
    drop_ghosts(topic, 0, ready)
  end

  -- Taken jobs are gone: they must be reported, whatever fails.
  local done, reason = pcall(take_all)
  if not done and count == 0 then error(reason) end
  return results
end
