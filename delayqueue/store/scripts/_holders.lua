-- Which worker holds a job, if it has told its name: for each server process, by the first part of its receipts, a hash with
-- "receipt name" of the jobs that it has handed out. An entry counts only while the job's run has that receipt.
-- requires  _run

-- An hour more than the longest TTR over HTTP. A job that beanstalkd's protocol has put can have 60 days: its holder's name is
-- forgotten if the process notes no other job for this long. With 60 days here, each process that died would leave its keys for
-- as long.
local HOLDERS_KEPT_MS = 90000000

local function holders_key(receipt) return tag .. ':holders:' .. string.match(receipt, '^[^-]*') end

-- The name of the worker that holds a job by this receipt; '' = unknown.
local function holder_of(id, receipt)
  local entry = redis.pcall('HGET', holders_key(receipt), id)
  local known, name = string.match(type(entry) == 'string' and entry or '', '^(%S+) (.*)$')
  return known == receipt and name or ''
end
