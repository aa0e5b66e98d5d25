-- Reads what the server processes that are alive have told. Changes nothing.
-- requires  _call
-- flags  no-writes
-- ARGV  servers or workers (heartbeat.lua), ms of silence after which one does not count
-- returns { name, ms when it was last heard, figures (JSON), ... }

return function(ARGV)
  local silence = tonumber(ARGV[2])
  local found, entries = {}, call('HGETALL', named_key(ARGV[1]))
  for i = 1, #entries, 2 do
    local heard, figures = string.match(entries[i + 1], '^(%d+) (.*)$')
    if heard and math.abs(now - heard) <= silence then
      found[#found + 1], found[#found + 2], found[#found + 3] = entries[i], tonumber(heard), figures
    end
  end
  return found
end
