-- What is told of a job.
-- requires  _holders, _turns

-- Returns two functions. The first reads a job that has not ended: { state, record, run or "", name of the worker that holds it or "" }, and
-- behind these, if it is ready and held up, what does that (groups.observer). The second reads any, by its id: so, or
-- { "ended", kept record } (see finish_job), or {} for an unknown id.
local function viewer()
  local held_by = groups.observer()

  local function view(id, job)
    local state, run = state_of(id, job), call('HGET', RUNS, id) or ''
    local worker = state == 'reserved' and holder_of(id, unpack_run(run).receipt) or ''
    return { state, job.record, run, worker, unpack(state == 'ready' and held_by(job) or {}) }
  end

  return view, function(id)
    local job = read_job(id)
    if job then return view(id, job) end
    local ended = call('HGET', ENDED, id)
    if ended and not is_hidden_ended(ended) then return { 'ended', ended } end
    return {}
  end
end
