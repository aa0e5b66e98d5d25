-- Waits for jobs in long polls, notes how late each arrives against the due time in its body, finishes it.
local bench = dofile("bench.lua")
local unfinished = {}

function request()
  bench.begin()
  local id = table.remove(unfinished)
  if id then return bench.protocol.finish(bench.topic, id) end
  return bench.protocol.pop(bench.topic)
end

function response(status, _, answer)
  local now_us = bench.now_us()
  local id, body = bench.protocol.popped(answer)
  if id then
    unfinished[#unfinished + 1] = id
    late_ms[#late_ms + 1] = now_us / 1000 - tonumber(body)
    bench.count(1, 0)
  elseif bench.protocol.accepted(status, answer) == 0 then
    bench.count(0, 1)
  end
end
