-- The delay index of scheduler = wheel: a timing wheel. It has the same functions as _zset.lua.
--
-- A turn of the wheel is an hour, divided into WHEEL_SLOTS slots (3600: a second each). A
-- job is in the slot of its due time whatever the hour, and the rounds that the wheel has to turn until then are part
-- of its score. A slot is a small sorted set: Redis stores up to 128 entries as one packed string, which is what saves
-- the memory, and it keeps milliseconds and order, which a list would not.
-- The hand of the wheel is not a number that has to be moved on: `wheel` has the slots with jobs by the earliest due time
-- in each, so its first entry is where the wheel stands, after any downtime and whatever the clock does.
-- requires  _call

local TURN_MS = 3600000
local SLOT_MS = TURN_MS / WHEEL_SLOTS
local TOTAL = 'all'  -- the field of `rounds` that counts every round

local function wheel_key(topic) return tag .. ':wheel:' .. topic end
local function rounds_key(topic) return tag .. ':rounds:' .. topic end
local function slot_key(topic, slot) return tag .. ':slot:' .. slot .. ':' .. topic end

-- Slot, score in it, and round of a due time. A score counts the ms that its slot has been under the hand since 1970,
-- which takes half the room of a due time.
local function place_of(due)
  local into_turn = due % TURN_MS
  local into_slot = into_turn % SLOT_MS
  local round = (due - into_turn) / TURN_MS
  return (into_turn - into_slot) / SLOT_MS, round * SLOT_MS + into_slot, round
end

local function due_of_score(slot, score)
  local into_slot = score % SLOT_MS
  return (score - into_slot) / SLOT_MS * TURN_MS + slot * SLOT_MS + into_slot
end

-- The least score in a slot of jobs that are due at `time` or later.
local function score_from(slot, time)
  local since = time - slot * SLOT_MS
  local into_turn = since % TURN_MS
  return (since - into_turn) / TURN_MS * SLOT_MS + math.min(into_turn, SLOT_MS)
end

-- The topic of a key with delayed jobs (name: without the tag), and how to read a score in it as a due time; nil for others.
local function delay_part(name)
  local slot, topic = string.match(name, '^slot:(%d+):(.*)$')
  slot = tonumber(slot)
  if slot and slot < WHEEL_SLOTS then return topic, function(score) return due_of_score(slot, score) end end
end

-- The sorted set for a job with this due time.
local function delay_key(topic, due) return slot_key(topic, (place_of(due))) end

local function count_round(topic, round, change)
  call('HINCRBY', rounds_key(topic), TOTAL, change)
  if call('HINCRBY', rounds_key(topic), round, change) > 0 then return end
  call('HDEL', rounds_key(topic), round)
  if call('HLEN', rounds_key(topic)) == 1 then call('DEL', rounds_key(topic)) end
end

-- Updates the earliest due time of a slot in `wheel`, after jobs have left it.
local function reset_slot(topic, slot)
  local score = tonumber(call('ZRANGE', slot_key(topic, slot), '0', '0', 'WITHSCORES')[2])
  if score then
    call('ZADD', wheel_key(topic), due_of_score(slot, score), slot)
  else
    call('ZREM', wheel_key(topic), slot)
  end
end

-- entries = { due, id, due, id, ... }
local function delay_add(topic, entries)
  local slots, firsts, rounds, wheel = {}, {}, {}, {}
  for i = 1, #entries, 2 do
    local due = entries[i]
    local slot, score, round = place_of(due)
    local members = slots[slot]
    if members then
      members[#members + 1], members[#members + 2] = score, entries[i + 1]
      firsts[slot] = math.min(firsts[slot], due)
    else
      slots[slot], firsts[slot] = { score, entries[i + 1] }, due
    end
    rounds[round] = (rounds[round] or 0) + 1
  end
  for slot, members in pairs(slots) do
    call('ZADD', slot_key(topic, slot), unpack(members))
    wheel[#wheel + 1], wheel[#wheel + 2] = firsts[slot], slot
  end
  call('ZADD', wheel_key(topic), 'LT', unpack(wheel))
  for round, jobs in pairs(rounds) do count_round(topic, round, jobs) end
end

local function delay_remove(topic, id, due)
  local slot, _, round = place_of(due)
  if call('ZREM', slot_key(topic, slot), id) == 0 then return false end
  local first = tonumber(call('ZSCORE', wheel_key(topic), slot))
  if not first or first >= due then reset_slot(topic, slot) end
  count_round(topic, round, -1)
  return true
end

-- For each id whether it is delayed; dues[i] is its record's due time.
local function delay_has(topic, ids, dues)
  local found = {}
  for i, id in ipairs(ids) do found[i] = call('ZSCORE', delay_key(topic, dues[i]), id) end
  return found
end

local fallen = {}  -- what delay_due found: slot, round, ids

-- The ids due by `now`, oldest first, at most `limit`. A call goes through less than a turn, so that a slot returns jobs of
-- one round only and the order of the slots is that of the due times; after a longer downtime it takes a few more calls.
local function delay_due(topic, limit)
  fallen = {}
  if limit < 1 then return {} end
  local slots = call('ZRANGEBYSCORE', wheel_key(topic), '-inf', int(now), 'WITHSCORES', 'LIMIT', '0', int(limit))
  local ids, turn_end = {}, nil
  for i = 1, #slots, 2 do
    local slot, first = tonumber(slots[i]), tonumber(slots[i + 1])
    turn_end = turn_end or first - first % SLOT_MS + TURN_MS
    if first >= turn_end or #ids >= limit then break end
    local before = int(score_from(slot, math.min(now + 1, turn_end)))
    local part = call('ZRANGEBYSCORE', slot_key(topic, slot), '-inf', '(' .. before, 'LIMIT', '0', int(limit - #ids))
    for _, id in ipairs(part) do ids[#ids + 1] = id end
    fallen[#fallen + 1] = { slot = slot, round = math.floor(first / TURN_MS), jobs = #part }
    if #part == 0 then reset_slot(topic, slot) end
  end
  return ids
end

-- Removes the ids that delay_due returned in this call: they are the first of their slots.
local function delay_drop_due(topic, _ids)
  for _, part in ipairs(fallen) do
    call('ZREMRANGEBYRANK', slot_key(topic, part.slot), 0, part.jobs - 1)
    reset_slot(topic, part.slot)
    count_round(topic, part.round, -part.jobs)
  end
end

-- The earliest due time, or nil.
local function delay_next(topic)
  return tonumber(call('ZRANGE', wheel_key(topic), '0', '0', 'WITHSCORES')[2])
end

local function delay_count(topic) return tonumber(call('HGET', rounds_key(topic), TOTAL)) or 0 end

-- Raises if a key that a topic's delayed jobs need besides their delay_key has the wrong type.
local function delay_check(topic)
  call('ZCARD', wheel_key(topic))
  call('HLEN', rounds_key(topic))
end
