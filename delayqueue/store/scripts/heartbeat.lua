-- Notes that a server process is alive, and drops those that have fallen silent. Bucket 1 keeps the list.
-- requires  _call
-- flags  allow-oom
-- layout  follows
-- waits  never
-- ARGV  name, figures (JSON), ms of silence after which one is dropped
-- returns {}

return function(ARGV)
  local name, figures, silence = ARGV[1], ARGV[2], tonumber(ARGV[3])
  call('HSET', SERVERS, name, int(now) .. ' ' .. figures)
  local entries = call('HGETALL', SERVERS)
  for i = 1, #entries, 2 do
    local heard = string.match(entries[i + 1], '^(%d+) ')
    if not heard or math.abs(now - heard) > silence then call('HDEL', SERVERS, entries[i]) end
  end
  return {}
end
