-- Makes a tag's jobs in one state due and ready now.
-- requires  _tag, _kick
-- flags  allow-oom
-- waits  changes
-- ARGV  state (buried | delayed), tag name, topic ("" = every), jobs looked at, about, where to go on (_tag.lua)
-- returns where to go on; the answer says how many were kicked

return function(ARGV)
  local state, name, topic, limit = unpack(ARGV)

  local states = { [state] = true }
  local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 5) }, function(id, job) return kick(id, job, states) end)
  return after, nil, count
end
