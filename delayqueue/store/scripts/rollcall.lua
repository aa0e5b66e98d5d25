-- Notes that a server process lives, and returns all that do. Bucket 1 keeps the list.
-- KEYS  tag, queue name
-- ARGV  name ("" = only look), figures (JSON), ms after which one that is silent is dropped
-- returns { now, { name, ms when it was heard last, figures, ... } }
local name, figures, silence = ARGV[1], ARGV[2], tonumber(ARGV[3])
local servers, now = tag .. ':servers', now_ms()
if name ~= '' then
  allow_when_full()
  call('HSET', servers, name, int(now) .. ' ' .. figures)
end
local found, entries = {}, call('HGETALL', servers)
for i = 1, #entries, 2 do
  local heard, said = string.match(entries[i + 1], '^(%d+) (.*)$')
  if not heard or now - heard > silence then
    call('HDEL', servers, entries[i])
  else
    found[#found + 1], found[#found + 2], found[#found + 3] = entries[i], tonumber(heard), said
  end
end
return { now, found }
