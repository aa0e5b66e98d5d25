-- Gives the delayed, ready and buried jobs of a tag a new due time, a new priority, or both.
-- requires  _tag, _reschedule
-- flags  allow-oom
-- waits  changes
-- ARGV  when (_reschedule.lua), priority ("" = their own), tag name, topic ("" = every), jobs looked at, about, where to go on
--       (_tag.lua)
-- returns { where to go on, the due ms of all of them, or -1; ids of those that were moved by a distance }; the answer says how
--         many were rescheduled
-- keeps: a job that is already as it should be is not counted, so that one that is met twice counts once. By a distance it would be
--        moved twice: topics.py leaves out those that were moved.

return function(ARGV)
  local when, priority, name, topic, limit = unpack(ARGV)
  local is_distance = string.sub(when, 1, 1) == '~'
  local moved = {}

  local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 6) }, function(id, job)
    local state = state_of(id, job)
    local has_priority = priority == '' or tonumber(priority) == priority_of(job)
    local is_there = when == '' or new_due(job, when) == job.due and state == 'delayed'
    if has_priority and is_there then return WRONG_STATE end
    local code = reschedule(id, job, state, when, priority)
    if code == OK and is_distance then moved[#moved + 1] = id end
    return code
  end)
  local due = (when == '' or is_distance) and -1 or time_of(when)
  return { after, due, moved }, nil, count
end
