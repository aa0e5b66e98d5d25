-- Records a subscriber's result for a job that is reserved for it, and ends the job with the last one.
-- requires  _job
-- flags  allow-oom
-- waits  changes
-- ARGV  for each record: id, receipt, subscriber, "1" if it succeeded, else "0", message, attempts, ms that it took,
--       ms until it may be called again ("" = never), "=" and a message if the job is finished with it, else ""
-- returns a code for each
-- keeps: only the holder of the reservation records; the results are in the job's run and stay there until its end.
--        A record that is sent again changes nothing but its times. Where a broken key prevents the end, the result is
--        kept all the same: the job is delivered again after its TTR, and only its end is tried again.
--
-- Calls are also counted per subscriber: `subscriber_calls:NAME` has those of a day by
-- the hour, `subscriber_failures:NAME` the last failures. Both expire. If counting fails, it is skipped: only the record matters.
-- A job's own call is not a subscriber's, though one may have its name.
--
-- A result: { name, ok, message, attempts, started, ended, due }, times in ms; no due: it is not called again.
local HOUR_MS, HOURS = 3600000, 24
local FAILURES, FAILURES_KEPT_MS, MESSAGE_BYTES = 5, 7 * 24 * HOUR_MS, 400

local function put(results, result)
  for i, old in ipairs(results) do
    if old.name == result.name then
      results[i] = result
      return
    end
  end
  results[#results + 1] = result
end

local function finish(id, job, run, message)
  finish_job(id, job, 'finished', message)
  tell('finished', job.topic, 1, now - run.started)
end

-- Returns a code, and whether it is the result of the job's own call.
local function record(id, receipt, result, delay, ending)
  local job, run = held_job(id, receipt)
  if not job then return run end
  local message = ending ~= '' and string.sub(ending, 2)
  if message and job.retain == 0 and pcall(finish, id, job, run, message) then return OK, job.call ~= nil end  -- the results go with the job
  result.due = delay and now + delay
  local results = results_of(run)
  put(results, result)
  run.results = cjson.encode(results)
  call('HSET', RUNS, id, pack_run(run))
  if message and job.retain > 0 then pcall(finish, id, job, run, message) end
  return OK, job.call ~= nil
end

-- The start of a text, at most `bytes` long, ending with a whole character.
local function beginning(text, most)
  if #text <= most then return text end
  return (string.gsub(string.sub(text, 1, most), '[\192-\255][\128-\191]*$', ''))
end

local function count_call(id, result)
  local key, hour = named_key('subscriber_calls:' .. result.name), int(math.floor(now / HOUR_MS))
  local outcome = result.ok and 'succeeded' or 'failed'
  if call('HINCRBY', key, 'ms ' .. hour, int(now - result.started)) == now - result.started then  -- the first of this hour
    for _, field in ipairs(call('HKEYS', key)) do
      if tonumber(string.match(field, '%d+$')) <= hour - HOURS then call('HDEL', key, field) end
    end
    call('PEXPIRE', key, (HOURS + 1) * HOUR_MS)
  end
  call('HINCRBY', key, outcome .. ' ' .. hour, 1)
  if result.ok then return end
  local failure = { at = now, id = id, message = beginning(result.message, MESSAGE_BYTES) }
  call('LPUSH', named_key('subscriber_failures:' .. result.name), cjson.encode(failure))
  call('LTRIM', named_key('subscriber_failures:' .. result.name), 0, FAILURES - 1)
  call('PEXPIRE', named_key('subscriber_failures:' .. result.name), FAILURES_KEPT_MS)
end

local function record_and_count(id, receipt, name, ok, message, attempts, took, delay, ending)
  local result = {
    name = name, ok = ok == '1', message = message, attempts = tonumber(attempts), started = now - tonumber(took), ended = now,
  }
  local code, is_own_call = record(id, receipt, result, tonumber(delay), ending)
  if code == OK and not is_own_call then pcall(count_call, id, result) end
  return code
end

return function(ARGV)
  return (for_each(record_and_count, ARGV, 9))
end
