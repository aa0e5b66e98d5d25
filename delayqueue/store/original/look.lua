-- Reads jobs of the original: their records and their times in the buckets. Changes nothing.
-- KEYS  the buckets
-- ARGV  prefix of job keys, limit of the answer in bytes, ids
-- returns { unix seconds, for each id { record or nil, time in each bucket or nil } }; fewer than were asked for if
--         the answer is full. Record keys are built here: the original knows no Redis Cluster.
local prefix, limit = ARGV[1], tonumber(ARGV[2])
local found, bytes = {}, 0

for i = 3, #ARGV do
  local key = prefix .. ARGV[i]
  local row = { redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) }
  bytes = bytes + (row[1] and #row[1] or 0)
  if bytes > limit and #found > 0 then break end
  for b, bucket in ipairs(KEYS) do row[b + 1] = redis.call('ZSCORE', bucket, ARGV[i]) end
  found[#found + 1] = row
end

return { tonumber(redis.call('TIME')[1]), found }
