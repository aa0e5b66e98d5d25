-- Undoes takes whose client was gone before it got the jobs: they are delayed until their due times, or ready with the next
-- tick.
-- requires  _job
-- flags  allow-oom
-- waits  never
-- ARGV  id, record, run ("" = none), "1" if the others of its group waited for it, else "0", for each job
-- returns for each OK, or UNAVAILABLE if a broken key, or a store that refuses, has cost it
-- keeps: a job that was pushed with the same id since stays, and so does its kept record.
local function restore(id, job, run, was_first)
  check_keys(job)
  local ended = call('HGET', ENDED, id)
  local kept = ended and job_of_ended(ended)
  if kept and kept.created ~= job.created then return end
  if run ~= '' then call('HSET', RUNS, id, run) end
  enter(id, job)
  delay_job(id, job, job.due)
  if was_first == '1' then groups.hold_up(id, job) end
  if ended then
    call('HDEL', ENDED, id)
    call('ZREM', done_key(job.topic), id)
  end
  tell('returned', job.topic, 1)
end

return function(ARGV)
  local results = {}
  for at = 1, #ARGV, 4 do
    local id, job = ARGV[at], unpack_record(ARGV[at + 1])
    local is_whole = not job or call('HEXISTS', JOBS, id) == 1 or pcall(restore, id, job, ARGV[at + 2], ARGV[at + 3])
    results[#results + 1] = is_whole and OK or UNAVAILABLE
  end
  return results
end
