-- Records how a subscriber fared with a job that is reserved for it.
-- requires  _life
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  for each record: id, receipt, subscriber, "1" where it succeeded, else "0", message, attempts, ms that it took,
--       ms until it may be called again ("" = never)
-- returns { code per record }
-- keeps: only the holder of the reservation records; the results stand in the job's run and go with it to its end.
--        A record that is sent again changes nothing but its times.
--
-- A result: { name, ok, message, attempts, started, ended, due }, times in ms; no due: it is not called again.
local now = now_ms()

local function put(results, result)
  for i, old in ipairs(results) do
    if old.name == result.name then
      results[i] = result
      return
    end
  end
  results[#results + 1] = result
end

local function record(id, receipt, result, delay)
  local job, code = held_job(id, receipt)
  if not job then return code end
  result.due = delay and now + delay
  local run = unpack_run(call('HGET', RUNS, id))
  local results = results_of(run)
  put(results, result)
  run.results = cjson.encode(results)
  call('HSET', RUNS, id, pack_run(run))
  return OK
end

local codes = {}
for at = 1, #ARGV, 8 do
  local result = {
    name = ARGV[at + 2], ok = ARGV[at + 3] == '1', message = ARGV[at + 4], attempts = tonumber(ARGV[at + 5]),
    started = now - tonumber(ARGV[at + 6]), ended = now,
  }
  codes[#codes + 1] = safely(record, ARGV[at], ARGV[at + 1], result, tonumber(ARGV[at + 7]))
end
return codes
