-- Reads jobs, including those that have ended and are still kept. Changes nothing.
-- requires  _job, _reads, _holders
-- flags  no-writes
-- ARGV  ids
-- returns for each id { state, record, run or "", name of the worker that holds it or "" } or { "ended", kept record } (see finish_job), or {} for an unknown id;
--         it ends before the id for which there is no room, or when it has done enough

local function get(id)
  local job = read_job(id)
  if job then
    local state, run = state_of(id, job), call('HGET', RUNS, id) or ''
    return { state, job.record, run, state == 'reserved' and holder_of(id, run) or '' }
  end
  local ended = call('HGET', ENDED, id)
  if ended and not is_hidden_ended(ended) then return { 'ended', ended } end
  return {}
end

return function(ARGV)
  local answers = {}
  for i, id in ipairs(ARGV) do
    if has_done_enough() or not may_read(all_bytes_of(id)) then break end
    answers[i] = get(id)
  end
  return answers
end
