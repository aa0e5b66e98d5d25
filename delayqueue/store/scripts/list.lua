-- Reads a page of the jobs of a tag, in no particular order. Changes nothing.
-- requires  _life, _reads
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  topic ("" = every), tag name, state ("" = every), first and last due ms (inclusive), entries looked at, about,
--       cursor ("" at first): "scan:skip", SSCAN's own and how many ids of its answer were on earlier pages; bytes that
--       the answer of which this is a part already holds
-- returns { next cursor ("" = that was all), { { id, state, record, run } or { id, "ended", kept record, "" } },
--           bytes that it holds then, 1 if it has no room for the next job, else 0 }
-- A job that moves meanwhile can be on two pages or on none.
local topic, name, state, first, last = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local limit, cursor = tonumber(ARGV[6]), ARGV[7]
local page, is_full = {}, false
read_bytes = tonumber(ARGV[8])

local function add(id)
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
  page[#page + 1] = found
end

local scan, skip = string.match(cursor, '^(%d+):(%d+)$')
scan, skip = scan or '0', tonumber(skip) or 0
local answer = call('SSCAN', tag_key(name), scan, 'COUNT', limit)
local next_scan, ids = answer[1], answer[2]
local place, last_place = skip, math.min(#ids, skip + limit)
while place < last_place do
  local id = ids[place + 1]
  is_full = not may_read(all_bytes_of(id))
  if is_full then break end
  add(id)
  place = place + 1
end
local next_cursor = next_scan == '0' and '' or next_scan .. ':0'
if place < #ids then next_cursor = scan .. ':' .. int(place) end
return { next_cursor, page, read_bytes, is_full and 1 or 0 }
