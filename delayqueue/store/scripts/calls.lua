-- Reads the calls of subscribers that were recorded in this bucket. Changes nothing.
-- requires  _call
-- flags  no-writes
-- ARGV  names of subscribers
-- returns for each name { "succeeded HOUR" or "failed HOUR" or "ms HOUR", number, ... },
--         and { the last failure (JSON: at ms, id, message), ... }
local MOST = 100  -- more than there can be: three fields an hour, five failures

return function(ARGV)
  local found = {}
  for _, name in ipairs(ARGV) do
    found[#found + 1] = call('HGETALL', named_key('subscriber_calls:' .. name))
    found[#found + 1] = call('LRANGE', named_key('subscriber_failures:' .. name), 0, MOST)
  end
  return found
end
