-- Takes jobs from the original, each only if it has not changed since it was read.
-- KEYS  lock, moving (id -> due ms), aside (id -> reason, line end, record), buckets
-- ARGV  token of the lock's holder, prefix of job keys, ready list in which the ids were found ("" = none), then
--       for each job: id, SHA-1 of its record ("" = it has none), its times in the buckets, due ms ("" = set it aside),
--       the reason to set it aside
-- returns { 1 if it was taken, set aside, or a leftover entry was dropped; else 0, per job }; the error LOCK if another
--         import has begun.
-- keeps: a job is here or in `moving`, never in both or neither. An id that the old server's pop has taken off the list
--        is left to it; one that its timer is moving becomes an entry without a record, which it skips.
local lock, moving, aside = KEYS[1], KEYS[2], KEYS[3]
local token, prefix, list = ARGV[1], ARGV[2], ARGV[3]

local function record_of(key)
  return redis.call('TYPE', key).ok == 'string' and redis.call('GET', key)
end

local function times_of(id)
  local times = {}
  for b = 4, #KEYS do times[#times + 1] = redis.call('ZSCORE', KEYS[b], id) or '-' end
  return table.concat(times, ' ')
end

local function leave_buckets(id)
  for b = 4, #KEYS do redis.call('ZREM', KEYS[b], id) end
end

-- Whether the id is ours now. The old server's pop takes it off the list in the same way, so only one of the two gets it.
local function claim(id, times)
  if list ~= '' then return redis.call('LREM', list, 1, id) == 1 end
  return times_of(id) == times
end

local function drop_entry(id)
  if list ~= '' then redis.call('LREM', list, 1, id) end
  leave_buckets(id)
  return 1
end

local function take(id, digest, times, due, reason)
  local record = record_of(prefix .. id)
  if not record then return digest == '' and drop_entry(id) or 0 end
  if redis.sha1hex(record) ~= digest or not claim(id, times) then return 0 end
  if due == '' then
    redis.call('HSET', aside, id, reason .. '\n' .. record)
  else
    redis.call('HSET', moving, id, due)
  end
  redis.call('DEL', prefix .. id)
  leave_buckets(id)
  return 1
end

if redis.call('GET', lock) ~= token then return redis.error_reply('LOCK is held by another import') end
local taken = {}
for at = 4, #ARGV, 5 do
  taken[#taken + 1] = take(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
end
return taken
