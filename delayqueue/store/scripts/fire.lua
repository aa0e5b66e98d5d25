-- Pushes the jobs of a schedule's occurrences and sets its next time.
-- KEYS  tag, queue name
-- ARGV  name, definition (JSON), time ms that it was read with, next time ms ("" = never again),
--       topic, ttr ms, body, then for each occurrence: id, due ms
-- returns 1, or 0 where another process was faster or the schedule was changed
-- keeps: an occurrence is pushed once among all processes: the comparison, the pushes and the new time are one script,
--        which is why the ids belong to the bucket in which the schedules stand.
local name, definition, time, next_time = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local topic, ttr, body = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local now = now_ms()

local function push(id, due)
  if call('HEXISTS', JOBS, id) == 1 then return end  -- somebody has pushed this very id
  local job = { ttr = ttr, created = now, expire = 0, retain = 0, topic = topic, options = '', body = body }
  delay_job(id, job, due)
  local ended = call('HGET', ENDED, id)
  if ended then forget_ended(id, ended) end
end

if call('HGET', registered_key('schedules'), name) ~= definition then return 0 end
if tonumber(call('ZSCORE', SCHEDULE_TIMES, name)) ~= time then return 0 end
for at = 8, #ARGV, 2 do push(ARGV[at], tonumber(ARGV[at + 1])) end
if #ARGV >= 8 then call('HSETNX', TOPICS, topic, '') end
if next_time == '' then
  call('ZREM', SCHEDULE_TIMES, name)
else
  call('ZADD', SCHEDULE_TIMES, next_time, name)
end
return 1
