-- Reads a page of the jobs of a topic in one state, or of a tag. Changes nothing.
-- KEYS  tag, queue name
-- ARGV  topic ("" = every, with a tag), tag name ("" = any), state ("" = every, with a tag), first due ms, last due ms,
--       entries looked at in about, cursor ("" at first)
-- returns { next cursor ("" = that was all), { { id, state, record, run } or { id, "ended", kept record, "" } } }
-- A job that moves meanwhile can be on two pages or on none, one whose ghost is in the ready list on two.
local topic, name, state, first, last = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local limit, cursor = tonumber(ARGV[6]), ARGV[7]
local LIMIT_BYTES = 4 * 1024 * 1024  -- an answer ends with the job that passes this
local page, bytes, listed = {}, 0, {}

local function add(id)
  if listed[id] then return end
  local ended = nil
  local job = read_job(id)
  local found
  if job then
    found = { id, state_of(id, job), pack_record(job), call('HGET', RUNS, id) or '' }
  else
    ended = call('HGET', ENDED, id)
    job = ended and job_of_ended(ended)
    if not job then return end
    found = { id, 'ended', ended, '' }
  end
  local its_state = ended and string.match(ended, '^%a+') or found[2]
  if topic ~= '' and job.topic ~= topic or state ~= '' and its_state ~= state then return end
  if job.due < first or job.due > last then return end
  listed[id] = true
  page[#page + 1] = found
  bytes = bytes + #found[3]
end

-- Adds ids until the answer is large enough; returns how many were looked at.
local function add_all(ids)
  for i, id in ipairs(ids) do
    add(id)
    if bytes >= LIMIT_BYTES then return i end
  end
  return #ids
end

-- Pages through a list of ids that `range(from, to)` reads; the cursor is the place of the next one.
local function by_place(range)
  local place = tonumber(cursor) or 0
  local ids = range(place, place + limit - 1)
  local looked = add_all(ids)
  if looked < limit and looked == #ids then return '' end
  return int(place + looked)
end

-- The cursor of a tag is "scan:skip": SSCAN's own, and how many ids of its answer were on earlier pages.
local function by_tag()
  local scan, skip = string.match(cursor, '^(%d+):(%d+)$')
  scan, skip = scan or '0', tonumber(skip) or 0
  local answer = call('SSCAN', tag_key(name), scan, 'COUNT', limit)
  local ids = {}
  for i = skip + 1, math.min(#answer[2], skip + limit) do ids[#ids + 1] = answer[2][i] end
  local looked = add_all(ids)
  if skip + looked < #answer[2] then return scan .. ':' .. int(skip + looked) end
  return answer[1] == '0' and '' or answer[1] .. ':0'
end

local function by_key(key, command)
  return by_place(function(from, to) return call(command, key, from, to) end)
end

local next_cursor
if name ~= '' then
  next_cursor = by_tag()
elseif state == 'delayed' then
  next_cursor = by_place(function(from, to) return delay_page(topic, first, last, from, to - from + 1) end)
elseif state == 'ready' then
  next_cursor = by_key(queue_key(topic), 'LRANGE')
elseif state == 'reserved' then
  next_cursor = by_key(reserved_key(topic), 'ZRANGE')
elseif state == 'buried' then
  next_cursor = by_key(buried_key(topic), 'ZRANGE')
else
  next_cursor = by_key(done_key(topic), 'ZRANGE')
end
return { next_cursor, page }
