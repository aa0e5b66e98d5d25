-- Gives back jobs whose client was gone before it got them: to the head of the list, the attempt uncounted.
-- KEYS  tag, queue name
-- ARGV  sender, receipt of each job and its id, in the order in which they were reserved
-- returns { topic, jobs made ready, ... }
-- keeps: only the reservation that the receipt names is undone.
local sender = ARGV[1]
local arrived = {}

local function put_back(id, receipt)
  local record, run = call('HGET', JOBS, id), unpack_run(call('HGET', RUNS, id))
  local job = record and unpack_record(record)
  if not job or run.receipt ~= receipt or not call('ZSCORE', reserved_key(job.topic), id) then return end
  call('LPUSH', queue_key(job.topic), id)
  call('ZREM', reserved_key(job.topic), id)
  run.attempt, run.receipt = run.attempt - 1, '-'
  if run.attempt == 0 then call('HDEL', RUNS, id) else call('HSET', RUNS, id, pack_run(run)) end
  arrived[job.topic] = (arrived[job.topic] or 0) + 1
end

for at = #ARGV - 1, 2, -2 do put_back(ARGV[at + 1], ARGV[at]) end

local topics = {}
for topic, count in pairs(arrived) do
  announce(sender, topic, count)
  topics[#topics + 1], topics[#topics + 2] = topic, count
end
return topics
