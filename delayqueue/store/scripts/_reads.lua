-- Limits what a call may read of jobs, so that its answer holds at most READ_LIMIT_BYTES or one job.
-- requires  _call

-- Whether the call may still read that many bytes; if so, they count.
local function may_read(bytes)
  if read_bytes > 0 and read_bytes + bytes > READ_LIMIT_BYTES then return false end
  read_bytes = read_bytes + bytes
  return true
end

-- The bytes of a job that has not ended; 0 if there is none.
local function bytes_of(id) return call('HSTRLEN', JOBS, id) + call('HSTRLEN', RUNS, id) end

-- The bytes of a job, also of one that has ended and is still kept; 0 if there is none.
local function all_bytes_of(id)
  local bytes = bytes_of(id)
  return bytes > 0 and bytes or call('HSTRLEN', ENDED, id)
end
