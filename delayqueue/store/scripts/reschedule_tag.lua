-- Gives the delayed, ready and buried jobs of a tag a new due time, a new priority, or both.
-- requires  _tag, _reschedule
-- flags  allow-oom
-- layout  follows
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  when (_reschedule.lua), priority ("" = their own), tag name, topic ("" = every), jobs looked at, about, where to go on
--       (_tag.lua)
-- returns { where to go on, jobs rescheduled, the due ms of all of them, or -1; ms to the earliest, or -1; ids of those that
--           were moved by a distance }
-- keeps: a job that is already as it should be is not counted, so that one that is met twice counts once. By a distance it would be
--        moved twice: topics.py leaves out those that were moved.
local when, priority, name, topic, limit = unpack(ARGV)
local now = now_ms()
local is_distance = string.sub(when, 1, 1) == '~'
local earliest, moved = nil, {}

local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 6) }, function(id, job)
  local has_priority = priority == '' or tonumber(priority) == (job.priority or USUAL_PRIORITY)
  local is_there = when == '' or new_due(job, when, now) == job.due and state_of(id, job) == 'delayed'
  if has_priority and is_there then return WRONG_STATE end
  local code, due = reschedule(id, when, priority, now)
  if code == OK then
    earliest = math.min(earliest or due, due)
    if is_distance then moved[#moved + 1] = id end
  end
  return code
end)
local due = (when == '' or is_distance) and -1 or time_of(when, now)
return { after, count, due, earliest and math.max(0, earliest - now) or -1, moved }
