-- Gives reserved jobs back after some of their subscribers failed: they wait until the first of these may be called
-- again; if none may, they are buried.
-- requires  _fail
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt, message, names of its subscribers (JSON array)
-- returns a code for each, and when it is due: ms, -1 = buried, -2 = expired
-- keeps: the pauses of those that failed in this round begin together, now, so that equal schedules stay in step.

-- Lets the pauses of this round begin now. Returns the first due time of the named subscribers, nil if there is none.
local function first_due(run, names)
  local counts, first, results = {}, nil, results_of(run)
  for _, name in ipairs(names) do counts[name] = true end
  for _, result in ipairs(results) do
    if result.due and result.ended >= run.started then result.due = now + result.due - result.ended end
    if result.due and counts[result.name] then first = math.min(first or result.due, result.due) end
  end
  if #results > 0 then run.results = cjson.encode(results) end
  return first
end

return function(ARGV)
  return fail_each(ARGV, 4, function(id, receipt, message, names)
    local job, run = held_job(id, receipt)
    if not job then return run end
    local first = first_due(run, cjson.decode(names))
    return OK, fail_job(id, job, run, message, first and math.max(0, first - now) or -1), job
  end)
end
