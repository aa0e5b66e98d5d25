-- Gives delayed, ready or buried jobs a new due time, a new priority, or both.
-- requires  _reschedule
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  for each job: id, when (_reschedule.lua), priority ("" = its own)
-- returns { { code per job }, { due ms per job, -1 = none }, ms to the earliest of them, or -1 }
local now = now_ms()
local codes, dues, earliest = {}, {}, nil

for at = 1, #ARGV, 3 do
  local code, due = safely(reschedule, ARGV[at], ARGV[at + 1], ARGV[at + 2], now)
  if not code then break end
  codes[#codes + 1], dues[#dues + 1] = code, code == OK and due or -1
  if code == OK then earliest = math.min(earliest or due, due) end
end
return { codes, dues, earliest and math.max(0, earliest - now) or -1 }
