-- Gives delayed, ready or buried jobs a new due time, a new priority, or both.
-- requires  _reschedule
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  for each job: id, when (_reschedule.lua), priority ("" = its own)
-- returns a code for each of the first ones, and when it is due: ms, -1 = its code is not OK

return function(ARGV)
  local codes, dues = {}, {}

  local function reschedule_one(id, when, priority)
    local job = read_job(id)
    if not job then return NOT_FOUND end
    return reschedule(id, job, state_of(id, job), when, priority)
  end

  for at = 1, #ARGV, 3 do
    local code, due = safely(reschedule_one, ARGV[at], ARGV[at + 1], ARGV[at + 2])
    if not code then break end
    codes[#codes + 1], dues[#dues + 1] = code, code == OK and due or -1
  end
  return codes, dues
end
