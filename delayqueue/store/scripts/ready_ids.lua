-- Reads part of a ready list. Changes nothing.
-- requires  _call
-- flags  no-writes
-- ARGV  topic, first place, last place (inclusive; -1 = the end)
-- returns { id, ... }, ghosts too

return function(ARGV)
  return call('LRANGE', queue_key(ARGV[1]), ARGV[2], ARGV[3])
end
