-- Pops ready jobs as fast as they come; only answers that hold a job count. COUNT ends it.
local bench = dofile("bench.lua")

function request()
  bench.begin()
  return bench.protocol.pop(bench.topic)
end

function response(_, _, answer)
  local popped = bench.protocol.popped(answer) and 1 or 0
  bench.count(popped, 1 - popped)
end
