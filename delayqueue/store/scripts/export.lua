-- Takes jobs out of this bucket for another one, where they belong since the number of buckets was changed. They wait in
-- a parcel until that bucket has them (import.lua); each bucket is sent one parcel at a time.
-- requires  _job
-- flags  allow-oom
-- layout  raises
-- waits  pushes
-- ARGV  number of the other bucket, ids
-- returns { number of the parcel, 0 = none; { id, place, ms, record, run, ... } }
--         place = delayed, ready, reserved (ms = deadline), buried (ms = since), ended (ms = when it is dropped; record =
--         what is kept), broken (ms = since; the record is unreadable)
-- keeps: a parcel that is on its way is returned instead of a new one. So a caller that gets none knows that all
--        of the ids that were ever here have arrived, or ended. A job leaves its place in the same script that puts it into the parcel.
local MOST_JOBS, MOST_BYTES = 40, 1024 * 1024  -- about 2 ms of the store's time, here and in the other bucket
local PIECE = 1000  -- elements that one command adds

local function time_in(place, id, job)
  if place == 'reserved' then return call('ZSCORE', reserved_key(job.topic), id) end
  if place == 'buried' then return call('ZSCORE', buried_key(job.topic), id) end
  return ''
end

return function(ARGV)
  local target = ARGV[1]
  local parcel, leavers, bytes = {}, {}, 0

  local function add(id, place, time, record, run, take_out)
    for _, part in ipairs({ id, place, time, record, run or '' }) do parcel[#parcel + 1] = part end
    leavers[#leavers + 1] = take_out
    bytes = bytes + #record
  end

  local function put_job(id, record)
    local job, run = unpack_record(record), call('HGET', RUNS, id)
    if not job then
      add(id, 'broken', call('ZSCORE', BROKEN, id) or int(now), record, run, function()
        call('HDEL', JOBS, id)
        call('HDEL', RUNS, id)
        call('ZREM', BROKEN, id)
      end)
      return
    end
    check_keys(job)
    local place = state_of(id, job)
    add(id, place, time_in(place, id, job), record, run, function()
      leave(id, job)
      untag(id, job)
      forget(id, job)
    end)
  end

  local function put_ended(id, ended)
    local job = job_of_ended(ended)
    if job then check_keys(job) end
    local time = job and call('ZSCORE', done_key(job.topic), id) or int(now)
    add(id, 'ended', time, ended, '', function() forget_ended(id, ended) end)
  end

  local function put(id)
    local record, ended = call('HGET', JOBS, id), call('HGET', ENDED, id)
    if record then put_job(id, record) elseif ended then put_ended(id, ended) end
  end

  local function send(number)
    call('RPUSH', parcel_key(target), number)
    for at = 1, #parcel, PIECE do
      call('RPUSH', parcel_key(target), unpack(parcel, at, math.min(at + PIECE - 1, #parcel)))
    end
    for _, take_out in ipairs(leavers) do take_out() end
  end

  local under_way = call('LRANGE', parcel_key(target), 0, -1)
  if #under_way > 0 then
    local number = tonumber(table.remove(under_way, 1))
    return { number, under_way }
  end
  local seen = {}
  for at = 2, #ARGV do
    local id = ARGV[at]
    if #leavers >= MOST_JOBS or bytes >= MOST_BYTES then break end
    if not seen[id] then put(id) end
    seen[id] = true
  end
  if #parcel == 0 then return { 0, {} } end
  -- By the clock, so that a server that has lost its last writes does not use a number again.
  local number = math.max(now, tonumber(call('HGET', SENT, target) or 0) + 1)
  call('HSET', SENT, target, int(number))
  send(int(number))
  return { number, parcel }
end
