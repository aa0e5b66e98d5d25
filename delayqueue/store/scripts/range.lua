-- Finds jobs of a topic by their due times, in one state. Changes nothing.
-- requires  _life, _index_ranges, _reads
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  topic, state ("ended" = finished, cancelled or expired), first and last due ms (inclusive), due ms and id of the last
--       job that is known already ("" = none), entries read, at most, place to start from (0 at first)
-- returns { next place, -1 if all of the state is read; { id, due ms, bytes, ... } of jobs after the known one }
-- Delayed jobs come in the order of their due times and need no place. The other states' indexes are not sorted by it.
local topic, state, first, last = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local known_due, known_id, limit, place = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local ENDED_STATES = { ended = true, finished = true, cancelled = true, expired = true }
local found = {}

-- As Redis sorts members of the same score, whatever the server's locale.
local function is_behind(due, id)
  if not known_due or due > known_due then return true end
  if due < known_due or id == known_id then return false end
  for i = 1, math.min(#id, #known_id) do
    local one, other = string.byte(id, i), string.byte(known_id, i)
    if one ~= other then return one > other end
  end
  return #id > #known_id
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
  local from, skip = first, 0
  if known_due and known_due >= first then from, skip = known_due, ties() end
  local page = delay_page(topic, from, last, skip, limit)
  for i = 1, #page, 2 do
    local id = page[i]
    add(id, page[i + 1], bytes_of(id))
  end
  return #page / 2 < limit and -1 or place + limit
end

local function ids_at(from, to)
  if state == 'ready' then return ready_ids_at(topic, from, to) end
  local keys = { reserved = reserved_key(topic), buried = buried_key(topic) }
  return call('ZRANGE', keys[state] or done_key(topic), from, to)
end

-- The job, if it is in the requested state.
local function job_of(id)
  if not ENDED_STATES[state] then
    local job = read_job(id)
    return job and job.topic == topic and state_of(id, job) == state and job
  end
  local ended = call('HGET', ENDED, id)
  local job = ended and job_of_ended(ended)
  return job and job.topic == topic and (state == 'ended' or string.match(ended, '^%a+') == state) and job
end

local function find()
  local ids, looked, seen = ids_at(place, place + limit - 1), 0, {}
  for _, id in ipairs(ids) do
    local bytes = ENDED_STATES[state] and call('HSTRLEN', ENDED, id) or bytes_of(id)
    if not may_read(bytes) then break end
    looked = looked + 1
    local job = not seen[id] and job_of(id)
    seen[id] = true
    if job and job.due >= first and job.due <= last and is_behind(job.due, id) then
      add(id, job.due, bytes)
    end
  end
  return looked == #ids and looked < limit and -1 or place + looked
end

local next_place
if state == 'delayed' then next_place = find_delayed() else next_place = find() end
return { next_place, found }
