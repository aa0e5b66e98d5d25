-- Finds the groups of a topic that have the most ready jobs, held ones too. Changes nothing.
-- requires  _groups
-- flags  no-writes
-- ARGV  topic, how many groups
-- returns { group, its ready jobs, those in hand, ... }, the one with the most first
-- keeps: the work does not grow with the number of jobs, nor of groups: the jobs of a group stand together, so of those that have
--        more than one in PROBES of the ready jobs none is missed; of fewer groups than that, none at all.
local PROBES = 200

return function(ARGV)
  local topic, most = ARGV[1], tonumber(ARGV[2])
  local found, seen = {}, {}

  local function add(group)
    if seen[group] then return end
    local from, to = groups.bounds(group)
    local one = { group, 0, call('ZLEXCOUNT', groups.hand_key(topic), from, to) }
    for _, key in ipairs({ groups.keys(topic, 'grouped') }) do one[2] = one[2] + call('ZLEXCOUNT', key, from, to) end
    seen[group], found[#found + 1] = true, one
  end

  for _, key in ipairs({ groups.keys(topic, 'grouped') }) do
    local size, place = call('ZCARD', key), 0
    while place < size do
      local group = groups.of_rank(call('ZRANGE', key, int(place), int(place))[1])
      add(group)
      local _, to = groups.bounds(group)
      place = math.max(math.floor(place + size / PROBES), call('ZLEXCOUNT', key, '-', to))
    end
  end
  table.sort(found, function(one, other) return one[2] > other[2] or one[2] == other[2] and one[1] < other[1] end)
  local answer = {}
  for i = 1, math.min(most, #found) do
    for _, part in ipairs(found[i]) do answer[#answer + 1] = part end
  end
  return answer
end
