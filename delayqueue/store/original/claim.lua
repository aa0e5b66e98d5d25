-- Notes which jobs are about to be taken, replacing the previous note; keeps the lock.
-- KEYS  lock, moving, destination
-- ARGV  token of the lock's holder, how long to hold it (ms), name of the destination, ids
-- returns how many ids; the error LOCK if another import has begun
local lock, moving, destination = KEYS[1], KEYS[2], KEYS[3]
local token, hold, name = ARGV[1], ARGV[2], ARGV[3]

if redis.call('GET', lock) ~= token then return redis.error_reply('LOCK is held by another import') end
redis.call('PEXPIRE', lock, hold)
redis.call('DEL', moving)
for i = 4, #ARGV do redis.call('HSET', moving, ARGV[i], '') end
if #ARGV >= 4 then redis.call('SET', destination, name) else redis.call('DEL', destination) end
return #ARGV - 3
