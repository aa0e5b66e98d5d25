-- Gives delayed, ready or buried jobs a new due time.
-- requires  _reschedule
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  for each job: id, when ("+" delay in ms, or "=" due in ms)
-- returns { { code per job }, { due ms per job, -1 = none }, ms to the earliest of them, or -1 }
local now = now_ms()
local codes, dues, earliest = {}, {}, nil

for at = 1, #ARGV, 2 do
  local due = time_of(ARGV[at + 1], now)
  local code = safely(reschedule, ARGV[at], due)
  codes[#codes + 1], dues[#dues + 1] = code, code == OK and due or -1
  if code == OK then earliest = math.min(earliest or due, due) end
end
return { codes, dues, earliest and math.max(0, earliest - now) or -1 }
