-- Puts the jobs of a parcel (export.lua) into this bucket, each in its place.
-- requires  _job
-- layout  follows
-- waits  pushes
-- needs  sync, replicas
-- ARGV  number of the bucket that sent the parcel, number of the parcel, then id, place, ms, record, run, ...
-- returns {}
-- keeps: a parcel is imported once, however often it comes, even if its jobs have moved on since. A job that is here already
--        stays: a server that lost its last writes may have sent it again.
local STRIDE = 5

local function put_ended(id, time, ended)
  call('HSET', ENDED, id, ended)
  local job = job_of_ended(ended)
  if not job then return end
  for _, name in ipairs(job.tags or {}) do call('SADD', tag_key(name), id) end
  call('ZADD', done_key(job.topic), time, id)
  wake_at(job.topic, time)
  call('HSETNX', TOPICS, job.topic, '')
end

return function(ARGV)
  local source, number = ARGV[1], tonumber(ARGV[2])

  local put_in = {
    delayed = function(id, job)
      delay_add(job.topic, { job.due, id })
      wake_at(job.topic, job.due)
    end,
    ready = make_ready,
    reserved = function(id, job, time)
      call('ZADD', reserved_key(job.topic), time, id)
      wake_at(job.topic, time)
    end,
    buried = function(id, job, time) call('ZADD', buried_key(job.topic), time, id) end,
  }

  local function put(id, place, time, record, run)
    if call('HEXISTS', JOBS, id) == 1 or call('HEXISTS', ENDED, id) == 1 then return end
    if place == 'ended' then return put_ended(id, time, record) end
    call('HSET', JOBS, id, record)
    if run ~= '' then call('HSET', RUNS, id, run) end
    if place == 'broken' then return call('ZADD', BROKEN, time, id) end
    local job = unpack_record(record)
    enter(id, job)
    put_in[place](id, job, time)
  end

  if number <= tonumber(call('HGET', TAKEN, source) or 0) then return {} end
  for at = 3, #ARGV, STRIDE do
    local job = ARGV[at + 1] == 'ended' and job_of_ended(ARGV[at + 3]) or unpack_record(ARGV[at + 3])
    if job then check_keys(job) end
  end
  for at = 3, #ARGV, STRIDE do put(unpack(ARGV, at, at + STRIDE - 1)) end
  call('HSET', TAKEN, source, number)
  return {}
end
