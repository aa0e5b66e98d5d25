-- The consistency of a sorted set of delayed jobs, for inspect.lua.
-- requires  _index

-- Nothing besides the sorted set could disagree with it.
local function delay_mismatch(_topic) return nil end

-- What a key is (name: without the tag): its type, its topic, how to read a score in it as a due time, and a function that
-- returns how to repair what disagrees with it, or nil.
local function delay_purpose(name)
  local topic, due_of = delay_part(name)
  if topic then return 'zset', topic, due_of, delay_mismatch end
  return nil
end
