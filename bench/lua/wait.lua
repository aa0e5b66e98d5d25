-- Waits in long polls on a topic that stays empty.
local bench = dofile("bench.lua")

function request()
  return bench.protocol.pop(bench.topic)
end
