-- Which worker holds a job, if it has told its name: for each server process, by the first part of its receipts, a hash with
-- "receipt name" of the jobs that it has handed out. An entry counts only while the job's run has that receipt.
-- requires  _run

local HOLDERS_KEPT_MS = 90000000  -- an hour more than the longest TTR

local function holders_key(receipt) return tag .. ':holders:' .. string.match(receipt, '^[^-]*') end

-- The name of the worker that holds a reserved job with this run; '' = unknown.
local function holder_of(id, run)
  local receipt = unpack_run(run).receipt
  local entry = redis.pcall('HGET', holders_key(receipt), id)
  local known, name = string.match(type(entry) == 'string' and entry or '', '^(%S+) (.*)$')
  return known == receipt and name or ''
end
