-- Reads jobs, including those that have ended and are still kept. Changes nothing.
-- requires  _view, _reads
-- flags  no-writes
-- ARGV  ids
-- returns for each id { state, record, run, worker, ... } (_view.lua) or { "ended", kept record } (see finish_job), or {} for an unknown id; it
--         ends before the id for which there is no room, or when it has done enough

return function(ARGV)
  local answers, view = {}, viewer()

  local function get(id)
    local job = read_job(id)
    if job then return view(id, job) end
    local ended = call('HGET', ENDED, id)
    if ended and not is_hidden_ended(ended) then return { 'ended', ended } end
    return {}
  end

  for i, id in ipairs(ARGV) do
    if has_done_enough() or not may_read(all_bytes_of(id)) then break end
    answers[i] = get(id)
  end
  return answers
end
