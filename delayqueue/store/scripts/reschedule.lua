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

  for at = 1, #ARGV, 3 do
    local code, due = safely(reschedule, ARGV[at], ARGV[at + 1], ARGV[at + 2])
    if not code then break end
    codes[#codes + 1], dues[#dues + 1] = code, code == OK and due or -1
  end
  return codes, dues
end
