-- The delay index of scheduler = wheel: a timing wheel. It has the same functions as _zset.lua.
--
-- A turn of the wheel is an hour, divided into WHEEL_SLOTS slots (put before this by store.py; 3600: a second each). A
-- job stands in the slot of its due time whatever the hour, and the rounds that the wheel has to turn until then are part
-- of its score. A slot is a small sorted set: Redis stores up to 128 entries as one packed string, which is what saves
-- the memory, and it keeps milliseconds and order, which a list would not.
-- The hand of the wheel is not a number that has to be moved on: `wheel` has the slots with jobs by the earliest due time
-- in each, so its first entry is where the wheel stands, after any downtime and whatever the clock does.

local TURN_MS = 3600000
local SLOT_MS = TURN_MS / WHEEL_SLOTS
local TOTAL = 'all'                  -- the field of `rounds` that counts every round
local LAST_DUE = 90 ^ 7 - 1          -- the last one that a record can hold

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

-- The sorted set in which a job with this due time stands.
local function delay_key(topic, due) return slot_key(topic, (place_of(due))) end

local function count_round(topic, round, change)
  call('HINCRBY', rounds_key(topic), TOTAL, change)
  if call('HINCRBY', rounds_key(topic), round, change) > 0 then return end
  call('HDEL', rounds_key(topic), round)
  if call('HLEN', rounds_key(topic)) == 1 then call('DEL', rounds_key(topic)) end
end

-- Enters the earliest due time of a slot in `wheel`, after jobs have left it.
local function reset_slot(topic, slot)
  local score = tonumber(call('ZRANGE', slot_key(topic, slot), 0, 0, 'WITHSCORES')[2])
  if score then
    call('ZADD', wheel_key(topic), int(due_of_score(slot, score)), slot)
  else
    call('ZREM', wheel_key(topic), slot)
  end
end

-- entries = { due, id, due, id, ... }, due as a string
local function delay_add(topic, entries)
  local slots, firsts, rounds = {}, {}, {}
  for i = 1, #entries, 2 do
    local due = tonumber(entries[i])
    local slot, score, round = place_of(due)
    local members = slots[slot] or {}
    members[#members + 1], members[#members + 2] = score, entries[i + 1]
    slots[slot] = members
    firsts[slot] = math.min(firsts[slot] or due, due)
    rounds[round] = (rounds[round] or 0) + 1
  end
  local wheel = {}
  for slot, members in pairs(slots) do
    call('ZADD', slot_key(topic, slot), unpack(members))
    wheel[#wheel + 1], wheel[#wheel + 2] = int(firsts[slot]), slot
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

-- The ids due by `now`, oldest first, at most `limit`. A call goes through less than a turn, so that a slot gives jobs of
-- one round only and the order of the slots is that of the due times; after a longer downtime it takes some calls more.
local function delay_due(topic, now, limit)
  fallen = {}
  if limit < 1 then return {} end
  local slots = call('ZRANGEBYSCORE', wheel_key(topic), '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, limit)
  local ids, turn_end = {}, nil
  for i = 1, #slots, 2 do
    local slot, first = tonumber(slots[i]), tonumber(slots[i + 1])
    turn_end = turn_end or first - first % SLOT_MS + TURN_MS
    if first >= turn_end or #ids >= limit then break end
    local before = int(score_from(slot, math.min(now + 1, turn_end)))
    local part = call('ZRANGEBYSCORE', slot_key(topic, slot), '-inf', '(' .. before, 'LIMIT', 0, limit - #ids)
    for _, id in ipairs(part) do ids[#ids + 1] = id end
    fallen[#fallen + 1] = { slot = slot, round = math.floor(first / TURN_MS), jobs = #part }
    if #part == 0 then reset_slot(topic, slot) end
  end
  return ids
end

-- Removes the ids that delay_due returned in this very script: they are the first of their slots.
local function delay_drop_due(topic, _ids)
  for _, part in ipairs(fallen) do
    call('ZREMRANGEBYRANK', slot_key(topic, part.slot), 0, part.jobs - 1)
    reset_slot(topic, part.slot)
    count_round(topic, part.round, -part.jobs)
  end
end

-- The earliest due time, or nil.
local function delay_next(topic)
  return tonumber(call('ZRANGE', wheel_key(topic), 0, 0, 'WITHSCORES')[2])
end

local function delay_count(topic) return tonumber(call('HGET', rounds_key(topic), TOTAL)) or 0 end

-- Raises where a key is of another type that a topic's delayed jobs need beside their delay_key.
local function delay_check(topic)
  call('ZCARD', wheel_key(topic))
  call('HLEN', rounds_key(topic))
end

-- The rounds with jobs that from <= due <= to reaches into, in order; of `whole` ones it takes in all jobs. Nothing is
-- due before round.from and after round.to.
local function rounds_between(topic, from, to)
  local rounds, flat, next_due = {}, call('HGETALL', rounds_key(topic)), delay_next(topic) or 0
  for i = 1, #flat, 2 do
    local start = (tonumber(flat[i]) or -1) * TURN_MS
    local last = start + TURN_MS - 1
    if start >= 0 and last >= from and start <= to then
      rounds[#rounds + 1] = {
        start = start, jobs = tonumber(flat[i + 1]), whole = from <= start and last <= to,
        from = math.max(from, start, next_due), to = math.min(to, last),
      }
    end
  end
  table.sort(rounds, function(one, other) return one.start < other.start end)
  return rounds
end

-- The slots from `first` to `last`, without those that have no jobs where that is found out in one call.
local function slots_between(topic, first, last)
  local slots = {}
  if call('ZCARD', wheel_key(topic)) > last - first then
    for slot = first, last do slots[#slots + 1] = slot end
    return slots
  end
  for _, member in ipairs(call('ZRANGE', wheel_key(topic), 0, last - first)) do
    local slot = tonumber(member)
    if slot >= first and slot <= last then slots[#slots + 1] = slot end
  end
  table.sort(slots)
  return slots
end

local function slots_of(topic, round)
  return slots_between(topic, (place_of(round.from)), (place_of(round.to)))
end

-- How many jobs have from <= due < to, and about how many sets had to be looked at for that.
local function delay_count_between(topic, from, to)
  local rounds = rounds_between(topic, from, to - 1)
  local count, looked = 0, 1 + #rounds / 10
  for _, round in ipairs(rounds) do
    if round.whole then
      count = count + round.jobs
    else
      local slots = slots_of(topic, round)
      for _, slot in ipairs(slots) do
        local least, most = score_from(slot, round.from), score_from(slot, round.to + 1) - 1
        count = count + call('ZCOUNT', slot_key(topic, slot), least, most)
      end
      looked = looked + #slots
    end
  end
  return count, looked
end

-- Appends the ids of one round after the first `offset` of them, until there are `limit` ids; returns what is left of the
-- offset.
local function read_round(topic, round, offset, limit, ids)
  for _, slot in ipairs(slots_of(topic, round)) do
    local key, least, most = slot_key(topic, slot), score_from(slot, round.from), score_from(slot, round.to + 1) - 1
    local skipped = offset > 0 and math.min(offset, call('ZCOUNT', key, least, most)) or 0
    offset = offset - skipped
    if offset == 0 then
      for _, id in ipairs(call('ZRANGEBYSCORE', key, least, most, 'LIMIT', skipped, limit - #ids)) do ids[#ids + 1] = id end
    end
    if #ids >= limit then break end
  end
  return offset
end

-- Appends all ids of several rounds, in one walk round the wheel instead of one for each.
local function read_rounds(topic, rounds, ids)
  local from, to, found = rounds[1].from, rounds[#rounds].to, {}
  for _, slot in ipairs(slots_between(topic, 0, WHEEL_SLOTS - 1)) do
    local least, most = score_from(slot, from), score_from(slot, to + 1) - 1
    local part = call('ZRANGEBYSCORE', slot_key(topic, slot), least, most, 'WITHSCORES')
    for i = 1, #part, 2 do found[#found + 1] = { id = part[i], due = due_of_score(slot, tonumber(part[i + 1])) } end
  end
  table.sort(found, function(one, other)
    if one.due == other.due then return one.id < other.id end
    return one.due < other.due
  end)
  for _, job in ipairs(found) do ids[#ids + 1] = job.id end
end

-- The rounds from rounds[at] on that have `room` jobs at most together.
local function rounds_within(rounds, at, room)
  local together, jobs = {}, 0
  while rounds[at] and jobs + rounds[at].jobs <= room do
    together[#together + 1] = rounds[at]
    jobs = jobs + rounds[at].jobs
    at = at + 1
  end
  return together
end

-- A page of the ids with from <= due <= to, in the order of their due times.
local function delay_page(topic, from, to, offset, limit)
  local rounds = rounds_between(topic, math.max(from, 0), math.min(to, LAST_DUE))
  local ids, at = {}, 1
  while rounds[at] and #ids < limit do
    local round = rounds[at]
    local together = offset == 0 and rounds_within(rounds, at, limit - #ids) or {}
    if #together > 1 then
      read_rounds(topic, together, ids)
      at = at + #together - 1
    elseif round.whole and round.jobs <= offset then
      offset = offset - round.jobs
    else
      offset = read_round(topic, round, offset, limit, ids)
    end
    at = at + 1
  end
  return ids
end

-- The first `limit` ids, in the order of their due times.
local function delay_first(topic, limit) return delay_page(topic, 0, LAST_DUE, 0, limit) end

-- For inspect.lua. A topic with more delayed jobs, or slots in use, than this is not counted again: it would take long.
local RECOUNT_LIMIT = 1000

local function is_out_of_step(topic, slot)
  local score = tonumber(call('ZRANGE', slot_key(topic, slot), 0, 0, 'WITHSCORES')[2])
  local entered = tonumber(call('ZSCORE', wheel_key(topic), slot))
  return entered ~= (score and due_of_score(slot, score))
end

-- How to mend the entries of slots in `wheel`, or nil.
local function slots_mismatch(topic, slots)
  local wrong = {}
  for _, slot in ipairs(slots) do
    if is_out_of_step(topic, slot) then wrong[#wrong + 1] = slot end
  end
  return #wrong > 0 and function()
    for _, slot in ipairs(wrong) do reset_slot(topic, slot) end
  end or nil
end

-- How many jobs are in each round and in all, and how many such counts there are; nil where the jobs are too many.
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

-- How to mend what a topic's slots are entered and counted as, or nil.
local function delay_mismatch(topic)
  local slots = call('ZRANGE', wheel_key(topic), 0, RECOUNT_LIMIT)
  if #slots > RECOUNT_LIMIT then return nil end
  local mend = slots_mismatch(topic, slots)
  if mend then return mend end
  local rounds, fields = count_rounds(topic, slots)
  if not rounds then return nil end
  local differs = call('HLEN', rounds_key(topic)) ~= fields
  for round, jobs in pairs(rounds) do differs = differs or tonumber(call('HGET', rounds_key(topic), round)) ~= jobs end
  return differs and function()
    call('DEL', rounds_key(topic))
    for round, jobs in pairs(rounds) do call('HSET', rounds_key(topic), round, jobs) end
  end or nil
end

-- What a key is (name: without the tag): its type, its topic, how a score in it is read as a due time, nil where jobs do
-- not stand in it, and a function that returns how to mend what disagrees with it, or nil.
local function delay_purpose(name)
  local slot, topic = string.match(name, '^slot:(%d+):(.*)$')
  slot = tonumber(slot)
  if slot and slot < WHEEL_SLOTS then
    return 'zset', topic, function(score) return due_of_score(slot, score) end, function() return slots_mismatch(topic, { slot }) end
  end
  topic = string.match(name, '^wheel:(.*)$')
  if topic then return 'zset', topic end
  topic = string.match(name, '^rounds:(.*)$')
  if topic then return 'hash', topic end
  return nil
end
