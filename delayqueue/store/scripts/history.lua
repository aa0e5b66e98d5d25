-- Reads slots of a ring of the history. Changes nothing.
-- requires  _history
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  length of the ring's slots in ms, its places, topics that a slot names at most, topic ("" = all), how many slots back
--       from the last one (0) to begin, how many slots, number of the last slot ("" = the current one), 1 = with the marks
-- returns { number of the last slot, { figures of each slot (_history.lua), "" if nothing is known, ... },
--           { mark ("ms kind lasted server"), ... } }
-- For a client that may reach some topics only, "all" means those of them that the slots name.
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
  local step, places, most_topics, topic = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
  local back, count, last, has_marks = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
  last = last or math.floor(now / step)

  -- A topic that a slot does not name had no events, unless the slot is full, or nobody has counted.
  local function of_topic(key)
    local own, all, named = unpack(call('HMGET', key, 't' .. topic, 'a', 'n'))
    if not all or not unpack_figures(all)[FIGURES] or (tonumber(named) or 0) >= most_topics then return own or '' end
    local figures = unpack_figures(own)
    add_figures(figures, NOTHING, true)
    return pack_figures(figures)
  end

  local function of_slot(number)
    local key = history_key(int(step), int(number % places))
    if not is_slot(key, number) then return '' end
    if topic ~= '' then return is_hidden(topic) and '' or of_topic(key) end
    return scope and of_scope(key) or call('HGET', key, 'a') or ''
  end

  local found, marks = {}, {}
  for number = last - back, last - back + count - 1 do found[#found + 1] = of_slot(number) end
  if has_marks then marks = redis.pcall('LRANGE', tag .. ':history:marks', 0, -1) end
  return { last, found, marks.err and {} or marks }
end
