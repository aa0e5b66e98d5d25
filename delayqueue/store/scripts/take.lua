-- Hands out delayed and ready jobs and removes them: each to one caller only.
-- requires  _job, _reads
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, first and last due ms (inclusive), ids
-- returns for each of the ids, from the first on, until the answer is full or the call has done enough: { record, run or "" },
--         NOT_FOUND if it can no longer be taken, or UNAVAILABLE
-- keeps: a job in the answer is gone from the store, its kept record (retain) says finished.
local FIRST_ID = 4
local WINDOW = 1000  -- entries at the head of the ready list that are searched for taken jobs

return function(ARGV)
  local topic, first, last = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
  local results, count = {}, 0  -- count = jobs that were taken
  local left = {}  -- ids that are in the ready list, but no longer ready

  local function take(id)
    local job = read_job(id)
    if not job or job.topic ~= topic or job.due < first or job.due > last then return NOT_FOUND end
    local run, state = call('HGET', RUNS, id) or '', state_of(id, job)
    if state ~= 'ready' and state ~= 'delayed' then return NOT_FOUND end
    if not pcall(finish_job, id, job, 'finished', '') then return UNAVAILABLE end  -- a broken key: it stays
    left[id] = state == 'ready' or nil
    count = count + 1
    tell('taken', topic, 1)
    return { job.record, run }
  end

  local function drop_left()
    local queue, dropped = queue_key(topic), 0
    for i, id in ipairs(call('LRANGE', queue, 0, WINDOW - 1)) do
      if left[id] then
        call('LSET', queue, i - 1, '')  -- no id is empty
        dropped = dropped + 1
      end
    end
    if dropped == 0 then return end
    call('LREM', queue, dropped, '')
    count_removed(topic, dropped)
    count_ghosts(topic, -dropped)
  end

  local function take_all()
    for at = FIRST_ID, #ARGV do
      local id = ARGV[at]
      if has_done_enough() or not may_read(bytes_of(id)) then break end
      results[#results + 1] = take(id)
    end
    if next(left) then drop_left() end
  end

  -- Taken jobs are gone: they must be reported, whatever fails.
  local done, reason = pcall(take_all)
  if not done and count == 0 then error(reason) end
  return results
end
