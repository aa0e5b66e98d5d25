-- Gives the delayed, ready and buried jobs of a tag a new due time.
-- requires  _tag, _reschedule
-- flags  allow-oom
-- layout  follows
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  when ("+" delay in ms, or "=" due in ms), tag name, topic ("" = every), jobs looked at, about, where to go on
--       (_tag.lua)
-- returns { where to go on, jobs rescheduled, due ms, ms until then }
-- keeps: a job that is already delayed until then is not counted, so that one that is met twice counts once.
local when, name, topic, limit = unpack(ARGV)
local now = now_ms()
local due = time_of(when, now)

local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 5) }, function(id, job)
  if job.due == due and state_of(id, job) == 'delayed' then return WRONG_STATE end
  return reschedule(id, due)
end)
return { after, count, due, math.max(0, due - now) }
