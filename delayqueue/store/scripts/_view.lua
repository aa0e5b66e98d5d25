-- What is told of a job that has not ended.
-- requires  _holders, _turns

-- Returns a function that reads it: { state, record, run or "", name of the worker that holds it or "" }, and behind these, if the job is
-- ready and held up, what does that (groups.observer).
local function viewer()
  local held_by = groups.observer()
  return function(id, job)
    local state, run = state_of(id, job), call('HGET', RUNS, id) or ''
    local worker = state == 'reserved' and holder_of(id, unpack_run(run).receipt) or ''
    return { state, job.record, run, worker, unpack(state == 'ready' and held_by(job) or {}) }
  end
end
