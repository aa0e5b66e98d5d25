-- Finds the groups of a topic that have the most ready jobs, held ones too. Changes nothing.
-- requires  _groups
-- flags  no-writes
-- ARGV  topic, how many groups
-- returns { group, its ready jobs, those in hand, ... }, the one with the most first
local PROBES = 200

return function(ARGV)
  local topic, most = ARGV[1], tonumber(ARGV[2])
  local found = {}
  for i, group in ipairs(groups.probe(topic, PROBES)) do
    local from, to = groups.bounds(group)
    found[i] = { group, groups.count(topic, group), call('ZLEXCOUNT', groups.hand_key(topic), from, to) }
  end
  table.sort(found, function(one, other) return one[2] > other[2] or one[2] == other[2] and one[1] < other[1] end)
  local answer = {}
  for i = 1, math.min(most, #found) do
    for _, part in ipairs(found[i]) do answer[#answer + 1] = part end
  end
  return answer
end
