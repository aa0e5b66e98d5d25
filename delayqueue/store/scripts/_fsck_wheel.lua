-- The consistency of a timing wheel, for inspect.lua.
-- requires  _index

-- A topic with more delayed jobs, or slots in use, than this is not counted again: it would take long.
local RECOUNT_LIMIT = 300

local function is_out_of_step(topic, slot)
  local score = tonumber(call('ZRANGE', slot_key(topic, slot), 0, 0, 'WITHSCORES')[2])
  local entered = tonumber(call('ZSCORE', wheel_key(topic), slot))
  return entered ~= (score and due_of_score(slot, score))
end

-- How to repair the entries of slots in `wheel`, or nil.
local function slots_mismatch(topic, slots)
  local wrong = {}
  for _, slot in ipairs(slots) do
    if is_out_of_step(topic, slot) then wrong[#wrong + 1] = slot end
  end
  return #wrong > 0 and function()
    for _, slot in ipairs(wrong) do reset_slot(topic, slot) end
  end or nil
end

-- How many jobs are in each round and in all, and how many such counts there are; nil if there are too many jobs.
local function count_rounds(topic, slots)
  local rounds, jobs, fields = {}, 0, 0
  local function count(field, number)
    if not rounds[field] then fields = fields + 1 end
    rounds[field] = (rounds[field] or 0) + number
  end
  for _, slot in ipairs(slots) do
    jobs = jobs + call('ZCARD', slot_key(topic, slot))
    if jobs > RECOUNT_LIMIT then return nil end
    local entries = call('ZRANGE', slot_key(topic, slot), 0, -1, 'WITHSCORES')
    for i = 2, #entries, 2 do count(int(math.floor(tonumber(entries[i]) / SLOT_MS)), 1) end
  end
  if jobs > 0 then count(TOTAL, jobs) end
  return rounds, fields
end

-- How to repair the entries and counts of a topic's slots, or nil.
local function delay_mismatch(topic)
  local slots = call('ZRANGE', wheel_key(topic), 0, RECOUNT_LIMIT)
  if #slots > RECOUNT_LIMIT then return nil end
  local repair = slots_mismatch(topic, slots)
  if repair then return repair end
  local rounds, fields = count_rounds(topic, slots)
  if not rounds then return nil end
  local differs = call('HLEN', rounds_key(topic)) ~= fields
  for round, jobs in pairs(rounds) do differs = differs or tonumber(call('HGET', rounds_key(topic), round)) ~= jobs end
  return differs and function()
    call('DEL', rounds_key(topic))
    for round, jobs in pairs(rounds) do call('HSET', rounds_key(topic), round, jobs) end
  end or nil
end

-- What a key is (name: without the tag): its type, its topic, how to read a score in it as a due time, nil if it does
-- not hold jobs, and a function that returns how to repair what disagrees with it, or nil.
local function delay_purpose(name)
  local topic, due_of = delay_part(name)
  if topic then
    local slot = tonumber(string.match(name, '^slot:(%d+)'))
    return 'zset', topic, due_of, function() return slots_mismatch(topic, { slot }) end
  end
  topic = string.match(name, '^wheel:(.*)$')
  if topic then return 'zset', topic end
  topic = string.match(name, '^rounds:(.*)$')
  if topic then return 'hash', topic end
  return nil
end
