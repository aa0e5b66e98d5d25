-- Hands out the jobs of a range of due times and removes them: each to one caller only.
-- KEYS  tag, queue name
-- ARGV  topic, start ms, end ms (both ends in), jobs at most, place in the ready list to look from
-- returns { next place in the ready list, or -1 where it was looked through,
--           { id, record, id, record, ... } in the order of the due times, ready ones first }
-- keeps: a job in the answer is gone from the store, its kept record (retain) says finished.
local topic, first, last = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local limit, place = tonumber(ARGV[4]), tonumber(ARGV[5])
local WINDOW = 1000                  -- ready ids looked at in one call
local LIMIT_BYTES = 4 * 1024 * 1024  -- an answer ends with the job that passes this
local now = now_ms()
local taken, bytes = {}, 0

local function is_full() return #taken / 2 >= limit or bytes >= LIMIT_BYTES end

local function take(id, job)
  local record = pack_record(job)
  if not pcall(finish_job, id, job, 'finished', '', now) then return end  -- a broken key: it stays
  taken[#taken + 1], taken[#taken + 2] = id, record
  bytes = bytes + #record
end

local function take_ready()
  local ids = call('LRANGE', queue_key(topic), place, place + WINDOW - 1)
  local looked = 0
  for _, id in ipairs(ids) do
    if is_full() then break end
    local job = read_job(id)
    if job and job.topic == topic and job.due >= first and job.due <= last and state_of(id, job) == 'ready' then
      take(id, job)
    end
    looked = looked + 1
  end
  local dropped = drop_ghosts(topic, place, looked)
  place = looked < WINDOW and looked == #ids and -1 or place + looked - dropped
end

local function take_delayed()
  for _, id in ipairs(delay_page(topic, first, last, 0, limit - #taken / 2)) do
    if is_full() then return end
    local job = read_job(id)
    if job then take(id, job) end
  end
end

allow_when_full()
-- What was taken is gone: it must be told, whatever comes between.
local done, reason = pcall(function()
  if place >= 0 then take_ready() end
  if place == -1 then take_delayed() end
end)
if not done and #taken == 0 then error(reason) end
return { place, taken }
