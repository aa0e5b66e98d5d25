-- Ends the staging of jobs that an import put here (engine/importer.py): each gets its due time, or is dropped.
-- requires  _job
-- flags  allow-oom
-- waits  pushes
-- ARGV  the due time that marks a staged job (ms), then for each job: id, due ms ("" = drop it)
-- returns a code for each: NOT_FOUND if it is no longer staged
-- keeps: a job that somebody finished, cancelled, kicked or pushed again since then is left as it is. One that somebody has reserved or
--        buried stays so, but will not go back to a time that never comes.

return function(ARGV)
  local staged_due = tonumber(ARGV[1])

  local function settle(id, due)
    local job = read_job(id)
    if not job or job.due ~= staged_due then return NOT_FOUND end
    if due == '' then
      leave(id, job)
      if job.expire > 0 then call('ZREM', expire_key(job.topic), id) end
      forget({ id }, is_for_set(job) and { id } or {})
    elseif state_of(id, job) == 'delayed' then
      leave(id, job)
      delay_job(id, job, tonumber(due))
    else
      job.due = tonumber(due)
      call('HSET', JOBS, id, pack_record(job))
    end
    return OK
  end

  return (for_each(settle, ARGV, 2, 2))
end
