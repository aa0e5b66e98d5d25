-- Gives out numbers that nobody else gets. A store that has lost its last writes may give some out again.
-- requires  _call
-- waits  never
-- ARGV  how many
-- returns { the first of them }; the others follow it

return function(ARGV)
  local count = tonumber(ARGV[1])
  return { call('INCRBY', tag .. ':numbers', int(count)) - count + 1 }
end
