-- Puts back jobs whose client was gone before it got them: at the head of the list, without counting the attempt, also for a
-- limit of the topic; an attempt in which a subscriber has worked on the job counts.
-- requires  _limits
-- flags  allow-oom
-- layout  raises
-- waits  never
-- KEYS  tag, queue name
-- ARGV  sender, then for each job its receipt, its id and a message ("" = none), in the order in which they were reserved
-- returns { { topic, jobs made ready, ... }, jobs processed, from the last one on }
-- keeps: only the reservation that the receipt names is undone.
local sender = ARGV[1]
local now = now_ms()

local function requeue(id, receipt, message)
  local job = held_job(id, receipt)
  if not job then return end
  local run = unpack_run(call('HGET', RUNS, id))
  local counts = run.results ~= ''
  add_ready(id, job, true)
  if not counts then run.attempt = run.attempt - 1 end
  run.receipt = '-'
  if message ~= '' then remark(run, message, now) end
  if run.attempt == 0 and run.notes == '' then call('HDEL', RUNS, id) else call('HSET', RUNS, id, pack_run(run)) end
  unreserve(id, job.topic)
  arrive(job.topic)
  tell('returned', job.topic, 1)
  local limit = settings_of(job.topic).limit
  if limit and not counts then count_through(job.topic, limit, -1, now) end
  if job.expire > 0 then  -- the timer may have skipped it while it was reserved
    call('ZADD', expire_key(job.topic), int(job.expire), id)
    wake_at(job.topic, job.expire)
  end
end

local looked = 0
for at = #ARGV - 2, 2, -3 do
  if has_done_enough() then break end
  looked = looked + 1
  pcall(requeue, ARGV[at + 1], ARGV[at], ARGV[at + 2])
end
return { announce_arrivals(sender), looked }
