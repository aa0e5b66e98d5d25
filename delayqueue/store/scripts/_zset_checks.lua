-- What a sorted set of delayed jobs is to inspect.lua.
-- requires  _index

-- There is nothing beside the sorted set that could disagree with it.
local function delay_mismatch(_topic) return nil end

-- What a key is (name: without the tag): its type, its topic, how a score in it is read as a due time, and a function that
-- returns how to repair what disagrees with it, or nil.
local function delay_purpose(name)
  local topic = string.match(name, '^delay:(.*)$')
  if topic then return 'zset', topic, tonumber, delay_mismatch end
  return nil
end
