-- Gives the delayed, ready and buried jobs of a tag a new due time.
-- KEYS  tag, queue name
-- ARGV  when ("+" delay in ms, or "=" due in ms), tag name, topic ("" = every), cursor ("0" at first),
--       jobs looked at in about
-- returns { { code per job }, due ms, ms until then, next cursor ("0" = all were looked at) }
-- keeps: a job that is delayed until then already is not counted, so that one which is met twice counts once.
local when, name, topic, cursor, limit = unpack(ARGV)
local now = now_ms()
local due = time_of(when, now)
local codes = {}

local function move(id)
  local job = read_job(id)
  if job.due == due and state_of(id, job) == 'delayed' then return WRONG_STATE end
  return reschedule(id, due)
end

allow_when_full()
local after, ids = tagged(name, topic, cursor, limit)
for i, id in ipairs(ids) do codes[i] = safely(move, id) end
return { codes, due, math.max(0, due - now), after }
