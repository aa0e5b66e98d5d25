-- Puts back jobs whose client is gone: at the head of the list, without counting the attempt, also for a limit of the topic. One that
-- the client had got counts for the limit, and comes before the others of its group where their order is strict; so does one that a
-- subscriber has worked on, whose attempt counts, too. A job that was reserved before it was
-- due goes back to its time, one that was buried is buried again. A job with a call that finds no place at its host is put off: its
-- record gets the time until which it waits, and its options keep when it was due.
-- requires  _limits
-- flags  allow-oom
-- waits  never
-- ARGV  for each job its receipt, its id, a message ("" = none), "1" if the client had got it, else "0", "1" if it was buried, else
--       "0", and ms that it is delayed for ("" = it is not); the last one that was reserved comes first
-- returns {}; the answer says how many were processed
-- keeps: only the reservation that the receipt names is undone.
local STRIDE = 6

-- The options get `"put_off":[DUE,UNTIL]`, which holds while the job waits until that time: who gives it another one need not know.
local function put_off(id, job, due)
  if job.options ~= '' then job.options = with_option(job.options, 'put_off', '[' .. int(job.own_due) .. ',' .. int(due) .. ']') end
  delay_job(id, job, due)
  groups.hold_up(id, job)
end

local function put_back(id, job, run, was_buried, delay)
  if was_buried then return bury_job(id, job) end
  if delay or is_early(job, run) then
    check_keys(job)
    if delay then return put_off(id, job, now + delay) end
    return delay_job(id, job, job.due)
  end
  add_ready(id, job, true)
  arrive(asked_as(job))
end

-- Whether a subscriber has worked on the job in this attempt; results of earlier ones stay with it.
local function has_worked(run)
  for _, result in ipairs(results_of(run)) do
    if (result.ended or 0) >= run.started then return true end
  end
  return false
end

local function requeue(receipt, id, message, was_told, was_buried, delay)
  local job, run = held_job(id, receipt)
  if not job then return end
  local counts = has_worked(run)
  local has_begun = counts or was_told == '1'
  if has_begun and was_buried ~= '1' then groups.hold_up(id, job) end
  put_back(id, job, run, was_buried == '1', tonumber(delay))
  if not counts then run.attempt = run.attempt - 1 end
  run.receipt = '-'
  if message ~= '' then remark(run, message) end
  if run.attempt == 0 and run.notes == '' then call('HDEL', RUNS, id) else call('HSET', RUNS, id, pack_run(run)) end
  unreserve(id, job)
  tell('returned', job.topic, 1)
  enter_expiry(id, job)  -- the timer may have skipped it while it was reserved
  local limit = settings_of(job.topic).limit
  if has_begun or not (limit and limit.rate) then return end
  count_through(job.topic, limit, -1)
  arrive_all(job.topic)  -- another may be handed out if this one waits
end

return function(ARGV)
  local looked = 0
  for at = 1, #ARGV, STRIDE do
    if has_done_enough() then break end
    looked = looked + 1
    pcall(requeue, unpack(ARGV, at, at + STRIDE - 1))
  end
  return {}, nil, looked
end
