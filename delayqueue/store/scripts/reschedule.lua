-- Gives delayed, ready or buried jobs a new due time, a new priority, or both.
-- requires  _reschedule
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, when (_reschedule.lua), priority ("" = its own)
-- returns a code for each of the first ones, and when it is due: ms, -1 = its code is not OK

local function reschedule_one(id, when, priority)
  local job = read_job(id)
  if not job then return NOT_FOUND, -1 end
  local code, due = reschedule(id, job, state_of(id, job), when, priority)
  return code, due or -1
end

return function(ARGV)
  return for_each(reschedule_one, ARGV, 3)
end
