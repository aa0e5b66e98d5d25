-- Ranges of due times on the timing wheel, for the verbs that read or count them.
-- requires  _index

local delay_count_between, delay_page, delay_first
do  -- limits the scope of the rest
  local LAST_DUE = 90 ^ 7 - 1  -- the last one that a record can hold

  -- The rounds with jobs that the range from <= due <= to overlaps, in order; it covers all jobs of `whole` ones. Nothing is
  -- due before round.from or after round.to.
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

  -- The slots from `first` to `last`, without empty ones if one call can find that out.
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

  -- How many jobs have from <= due < to, and about how many sets had to be read for that.
  function delay_count_between(topic, from, to)
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

  local function append(found, id, due) found[#found + 1], found[#found + 2] = id, due end

  -- Appends the jobs of one round after the first `offset` of them, until there are `limit`; returns what is left of the
  -- offset.
  local function read_round(topic, round, offset, limit, found)
    for _, slot in ipairs(slots_of(topic, round)) do
      local key, least, most = slot_key(topic, slot), score_from(slot, round.from), score_from(slot, round.to + 1) - 1
      local skipped = offset > 0 and math.min(offset, call('ZCOUNT', key, least, most)) or 0
      offset = offset - skipped
      if offset == 0 then
        local room = limit - #found / 2
        local part = call('ZRANGEBYSCORE', key, least, most, 'WITHSCORES', 'LIMIT', skipped, room)
        for i = 1, #part, 2 do append(found, part[i], due_of_score(slot, tonumber(part[i + 1]))) end
      end
      if #found / 2 >= limit then break end
    end
    return offset
  end

  -- Appends all jobs of several rounds, in one walk round the wheel instead of one for each.
  local function read_rounds(topic, rounds, found)
    local from, to, jobs = rounds[1].from, rounds[#rounds].to, {}
    for _, slot in ipairs(slots_between(topic, 0, WHEEL_SLOTS - 1)) do
      local least, most = score_from(slot, from), score_from(slot, to + 1) - 1
      local part = call('ZRANGEBYSCORE', slot_key(topic, slot), least, most, 'WITHSCORES')
      for i = 1, #part, 2 do
        local due = due_of_score(slot, tonumber(part[i + 1]))
        jobs[#jobs + 1] = { id = part[i], due = due, place = #jobs }
      end
    end
    table.sort(jobs, function(one, other)
      if one.due == other.due then return one.place < other.place end  -- in one slot, which is ordered by id
      return one.due < other.due
    end)
    for _, job in ipairs(jobs) do append(found, job.id, job.due) end
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

  -- A page of the jobs with from <= due <= to, in the order of their due times: { id, due, ... }
  function delay_page(topic, from, to, offset, limit)
    local rounds = rounds_between(topic, math.max(from, 0), math.min(to, LAST_DUE))
    local found, at = {}, 1
    while rounds[at] and #found / 2 < limit do
      local round = rounds[at]
      local together = offset == 0 and rounds_within(rounds, at, limit - #found / 2) or {}
      if #together > 1 then
        read_rounds(topic, together, found)
        at = at + #together - 1
      elseif round.whole and round.jobs <= offset then
        offset = offset - round.jobs
      else
        offset = read_round(topic, round, offset, limit, found)
      end
      at = at + 1
    end
    return found
  end

  -- The first `limit` ids, in the order of their due times.
  function delay_first(topic, limit)
    local ids, page = {}, delay_page(topic, 0, LAST_DUE, 0, limit)
    for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
    return ids
  end
end
