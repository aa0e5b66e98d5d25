-- Finds jobs of a topic by their due times, in one state. Changes nothing.
-- requires  _job, _index_ranges, _marks, _reads
-- flags  no-writes
-- ARGV  topic, state ("ended" = finished, cancelled, expired or dropped; "ready", "ranked" and "called" = ready, with the usual priority,
--       with another one, and with a call; jobs of groups come behind the latter two), first and last due ms (inclusive), due ms and id of the last job that is known already ("" = none),
--       entries read, at most, mark to start from ("" at first), mark to stop at ("" = at the end)
-- returns { mark to go on from, 1 if there is no more before the end, else 0; { id, due ms, bytes, ... } of jobs after the
--           known one }; the answer says how many entries were read
-- Delayed jobs come in the order of their due times and need no marks. The other states' indexes are not sorted by it.
local ENDED_STATES = { ended = true, finished = true, cancelled = true, expired = true, dropped = true }
local READY_SETS = { ranked = ranked_key, called = called_key }
local LANES = { ranked = '', called = 'called_' }
local GROUPED = 'g'  -- before a mark among the jobs of groups
local SETS = { ranked = ranked_key, called = called_key, reserved = reserved_key, buried = buried_key }

return function(ARGV)
  local topic, state, first, last = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  local known_due, known_id, limit, from, to = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
  local found, grouped = {}, LANES[state] and groups.key('grouped', LANES[state], topic)

  local function is_behind(due, id)
    if not known_due or due > known_due then return true end
    return due == known_due and marks.is_after(id, known_id)
  end

  local function add(id, due, bytes)
    found[#found + 1], found[#found + 2], found[#found + 3] = id, int(due), bytes
  end

  -- How many delayed jobs with the due time of the known one come before it, including itself.
  local function ties()
    local low, high = 0, (delay_count_between(topic, known_due, known_due + 1))
    while low < high do
      local middle = math.floor((low + high) / 2)
      local id = delay_page(topic, known_due, known_due, middle, 1)[1]
      if id and not is_behind(known_due, id) then low = middle + 1 else high = middle end
    end
    return low
  end

  local function find_delayed()
    local since, skip = first, 0
    if known_due and known_due >= first then since, skip = known_due, ties() end
    local page = delay_page(topic, since, last, skip, limit)
    for i = 1, #page, 2 do
      local id = page[i]
      add(id, page[i + 1], bytes_of(id))
    end
    return { '', #page / 2 < limit and 1 or 0, found }, nil, #page / 2
  end

  -- The ids from one place of the index to another, and a function for the mark behind the n-th of them.

  local function list_at(start, stop)
    return call('LRANGE', queue_key(topic), start, stop), function(i) return marks.in_list(topic, start + i) end
  end

  local function set_at(key, start, stop, is_grouped)
    local entries, ids = call('ZRANGE', key, start, stop, 'WITHSCORES'), {}
    for i = 1, #entries, 2 do
      if is_grouped then
        ids[#ids + 1] = groups.id_of_rank(entries[i])
      else
        ids[#ids + 1] = READY_SETS[state] and id_of_rank(entries[i]) or entries[i]
      end
    end
    return ids, function(i) return (is_grouped and GROUPED or '') .. marks.of(entries[2 * i - 1], entries[2 * i]) end
  end

  -- The job, if it is in the requested state, and in this index.
  local function job_of(id)
    if not ENDED_STATES[state] then
      local job = read_job(id)
      local wanted = READY_SETS[state] and 'ready' or state
      if not job or job.topic ~= topic or state_of(id, job) ~= wanted then return nil end
      if wanted ~= 'ready' then return job end
      local key = is_ranked(id, job) and set_of(job) or nil
      return (key == (READY_SETS[state] and READY_SETS[state](topic)) or key and key == grouped) and job
    end
    local ended = call('HGET', ENDED, id)
    local job = ended and job_of_ended(ended)
    return job and job.topic == topic and (state == 'ended' or string.match(ended, '^%a+') == state) and job
  end

  local function find()
    local key = state ~= 'ready' and (SETS[state] or done_key)(topic)
    local function is_in_groups(mark) return string.sub(mark, 1, 1) == GROUPED end
    local goes_on = grouped and (to == '' or is_in_groups(to)) and call('EXISTS', grouped) == 1
    local is_grouped = is_in_groups(from) or goes_on and from == '' and call('EXISTS', key) == 0
    if is_grouped then key = grouped end
    local function place(mark)
      if is_in_groups(mark) then
        if not is_grouped then return math.huge end
        mark = string.sub(mark, 2)
      end
      if key then return marks.rank(key, mark) end
      return marks.place(topic, mark)
    end
    local start, count = place(from), limit
    if to ~= '' then count = math.min(limit, place(to) - start) end
    if count <= 0 then return { to, 1, found }, nil, 0 end
    local ids, mark_behind
    if key then ids, mark_behind = set_at(key, start, start + count - 1, is_grouped) else ids, mark_behind = list_at(start, start + count - 1) end
    local looked, seen = 0, {}
    for _, id in ipairs(ids) do
      local bytes = ENDED_STATES[state] and call('HSTRLEN', ENDED, id) or bytes_of(id)
      if has_done_enough() or not may_read(bytes) then break end
      looked = looked + 1
      local job = not seen[id] and job_of(id)
      seen[id] = true
      if job and job.due >= first and job.due <= last and is_behind(job.due, id) then
        add(id, job.due, bytes)
      end
    end
    local is_end = looked == #ids and (looked < count or count < limit)
    if is_end and goes_on and not is_grouped then return { GROUPED, 0, found }, nil, looked end
    return { looked > 0 and mark_behind(looked) or from, is_end and 1 or 0, found }, nil, looked
  end

  if state == 'delayed' then return find_delayed() end
  return find()
end
