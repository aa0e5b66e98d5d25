-- Pushes the jobs of a schedule's occurrences and sets its next time.
-- requires  _job
-- waits  never
-- ARGV  name, definition (JSON), time ms that it was read with, next time ms ("" = never again),
--       topic, ttr ms, body, options (JSON or ""), then for each occurrence: id, another id for it if somebody else's job has the first, due ms
-- returns { 1, the first ids that were somebody else's, ... }; { 0 } if another process was faster or the schedule was changed
-- keeps: an occurrence is pushed once among all processes: the comparison, the pushes and the new time are one script,
--        which is why the ids belong to the bucket that holds the schedules. A key of the wrong type is met before the first
--        push, as another try would find the ids taken.

return function(ARGV)
  local name, definition, time, next_time = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
  local topic, ttr, body, options = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]

  local taken, said, times = {}, read_options(options), named_key('schedule_times')

  local function job_at(due)
    return {
      ttr = ttr, due = due, created = now, expire = 0, retain = 0, topic = topic, options = options, body = body, call = said.call,
      group = said.group,
    }
  end

  local function push(first_id, spare_id, due)
    local id, job = first_id, job_at(due)
    if call('HEXISTS', JOBS, id) == 1 then id = spare_id end
    local ended = call('HGET', ENDED, id)
    if is_for_set(job) then note_priority(id, job) end
    delay_job(id, job, due)
    if ended then forget_ended(id, ended) end
    if id ~= first_id then taken[#taken + 1] = first_id end
    tell('pushed', topic, 1)
  end

  if call('HGET', named_key('schedules'), name) ~= definition then return { 0 } end
  if tonumber(call('ZSCORE', times, name)) ~= time then return { 0 } end
  for at = 11, #ARGV, 3 do check_keys(job_at(tonumber(ARGV[at]))) end
  if #ARGV >= 9 then
    call('ZSCORE', TIMERS, topic)
    call('HSETNX', TOPICS, topic, '')
  end
  for at = 9, #ARGV, 3 do push(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])) end
  if next_time == '' then
    call('ZREM', times, name)
  else
    call('ZADD', times, next_time, name)
  end
  return { 1, unpack(taken) }
end
