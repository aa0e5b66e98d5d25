-- Notes which workers hold jobs, and tells what happened to the jobs: the server that has handed them out asks every few seconds.
-- requires  _job, _holders
-- flags  allow-oom
-- waits  never
-- ARGV  for each job: id, topic, receipt, the worker's name, the deadline that this returned last (0 = none): with the same, nothing else is read
-- returns for each the deadline of that reservation in ms; -1 = the job has ended, -2 = it has not, but the reservation has
-- keeps: an entry stands only for the reservation of its receipt. What a server that died leaves behind expires.
local STRIDE = 5

local function hold(id, topic, receipt, name, known)
  local due = call('ZSCORE', reserved_key(topic), id)
  if due == known then return tonumber(due) end
  local key, run = holders_key(receipt), call('HGET', RUNS, id)
  if due and run and unpack_run(run).receipt == receipt then
    call('HSET', key, id, receipt .. ' ' .. name)
    call('PEXPIRE', key, HOLDERS_KEPT_MS)
    return tonumber(due)
  end
  local entry = call('HGET', key, id)
  if entry and string.sub(entry, 1, #receipt + 1) == receipt .. ' ' then call('HDEL', key, id) end
  return call('HEXISTS', JOBS, id) == 1 and -2 or -1
end

return function(ARGV) return (for_each(hold, ARGV, STRIDE)) end
