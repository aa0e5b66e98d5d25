-- What is told of a job.
-- requires  _holders, _turns

-- Returns a function that reads one that has not ended: { state, record, run or "", name of the worker that holds it or "" }, and behind these, if the job is
-- ready and held up, what does that (groups.observer).
local function viewer()
  local held_by = groups.observer()
  return function(id, job)
    local state, run = state_of(id, job), call('HGET', RUNS, id) or ''
    local worker = state == 'reserved' and holder_of(id, unpack_run(run).receipt) or ''
    return { state, job.record, run, worker, unpack(state == 'ready' and held_by(job) or {}) }
  end
end

-- Returns a function that reads any: as viewer() does; { "ended", kept record } (see finish_job); {} for an unknown id.
local function reader()
  local view = viewer()
  return function(id)
    local job = read_job(id)
    if job then return view(id, job) end
    local ended = call('HGET', ENDED, id)
    if ended and not is_hidden_ended(ended) then return { 'ended', ended } end
    return {}
  end
end
