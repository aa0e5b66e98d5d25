-- Reads jobs, including those that have ended and are still kept. Changes nothing.
-- requires  _view, _reads
-- flags  no-writes
-- ARGV  ids
-- returns for each id what viewer() reads (_view.lua); it ends before the id for which there is no room, or when it has done enough
return function(ARGV)
  local answers, _, read = {}, viewer()
  for i, id in ipairs(ARGV) do
    if has_done_enough() or not may_read(all_bytes_of(id)) then break end
    answers[i] = read(id)
  end
  return answers
end
