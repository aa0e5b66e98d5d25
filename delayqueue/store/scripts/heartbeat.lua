-- Notes what a server process tells the others, and drops what those told that have fallen silent. Bucket 1 keeps it.
-- requires  _call
-- flags  allow-oom
-- waits  never
-- ARGV  what it is about: servers or workers (keys.py), name, figures (JSON), ms of silence after which one is dropped
-- returns {what was told under that name before, beginning with the time in ms; '' = nothing}

return function(ARGV)
  local told, name, figures, silence = named_key(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
  local former = call('HGET', told, name)
  call('HSET', told, name, int(now) .. ' ' .. figures)
  local entries = call('HGETALL', told)
  for i = 1, #entries, 2 do
    local heard = string.match(entries[i + 1], '^(%d+) ')
    if not heard or math.abs(now - heard) > silence then call('HDEL', told, entries[i]) end
  end
  return {former or ''}
end
