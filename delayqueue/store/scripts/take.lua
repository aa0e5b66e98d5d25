-- Hands out delayed and ready jobs and removes them: each to one caller only.
-- requires  _life, _reads
-- flags  allow-oom
-- layout  follows
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  topic, first and last due ms (inclusive), ids
-- returns { how many of the ids, from the first on, were processed before the answer was full; how many of them can no longer
--           be taken; { id, record, run or "", ... } }
-- keeps: a job in the answer is gone from the store, its kept record (retain) says finished.
local topic, first, last = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local FIRST_ID = 4
local WINDOW = 1000  -- entries at the head of the ready list that are searched for taken jobs
local now = now_ms()
local taken, looked, gone = {}, 0, 0
local left = {}  -- ids that are in the ready list, but no longer ready

local function take(id, job, run)
  local record, state = pack_record(job), state_of(id, job)
  if state ~= 'ready' and state ~= 'delayed' then
    gone = gone + 1
  elseif pcall(finish_job, id, job, 'finished', '', now) then  -- a broken key: it stays
    taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = id, record, run
    left[id] = state == 'ready' or nil
    tell('taken', topic, 1)
  end
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
    if not may_read(bytes_of(id)) then break end
    looked = looked + 1
    local job = read_job(id)
    if job and job.topic == topic and job.due >= first and job.due <= last then
      take(id, job, call('HGET', RUNS, id) or '')
    else
      gone = gone + 1
    end
  end
  if next(left) then drop_left() end
end

-- Taken jobs are gone: they must be reported, whatever fails.
local done, reason = pcall(take_all)
if not done and #taken == 0 then error(reason) end
return { looked, gone, taken }
