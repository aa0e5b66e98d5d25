-- Reads steps of a ring of the history. Changes nothing.
-- requires  _history
-- flags  no-writes
-- ARGV  length of the ring's steps in ms, its places, topics that a step names at most, how many steps back
--       from the last one (0) to begin, how many steps, number of the last step ("" = the current one), 1 = with the marks,
--       topics (none = all together)
-- returns { number of the last step, { figures of each step (_history.lua), of each topic in it, "" if nothing is known, ... },
--           { mark ("ms kind lasted server"), ... } }
-- For a client that may reach some topics only, "all" means those of them that the steps name.
local NOTHING = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

local function of_scope(key)
  local fields, sum = call('HGETALL', key), nil
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 1) == 't' and not is_hidden(string.sub(fields[i], 2)) then
      local figures = unpack_figures(fields[i + 1])
      if sum then add_figures(sum, figures, false) else sum = figures end
    end
  end
  return sum and pack_figures(sum) or ''
end

return function(ARGV)
  local step, places, most_topics = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  local back, count, last, has_marks = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
  local topics = { unpack(ARGV, 8) }
  local fields = { 'a', 'n' }
  for i, topic in ipairs(topics) do fields[i + 2] = 't' .. topic end
  last = last or math.floor(now / step)

  local found, marks = {}, {}

  -- A topic that a step does not name had no events, unless the step is full, or nobody has counted.
  local function add_topics(key)
    local values = key and call('HMGET', key, unpack(fields)) or {}
    local all, named = values[1], tonumber(values[2]) or 0
    local names_all = all and unpack_figures(all)[FIGURES] and named < most_topics
    for i, topic in ipairs(topics) do
      local own = values[i + 2] or ''
      if names_all then
        local figures = unpack_figures(own)
        add_figures(figures, NOTHING, true)
        own = pack_figures(figures)
      end
      found[#found + 1] = is_hidden(topic) and '' or own
    end
  end

  local function add_all(key)
    found[#found + 1] = key and (scope and of_scope(key) or call('HGET', key, 'a')) or ''
  end

  local add = topics[1] and add_topics or add_all
  for number = last - back, last - back + count - 1 do
    local key = history_key(int(step), int(number % places))
    add(is_step(key, number) and key or nil)
  end
  if has_marks then marks = redis.pcall('LRANGE', tag .. ':history:marks', 0, -1) end
  return { last, found, marks.err and {} or marks }
end
