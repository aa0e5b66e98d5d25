-- Waits for jobs in long polls, notes how late each arrives against the due time in its body, finishes it; BATCH at a time
-- if the server has arrays.
local bench = dofile("bench.lua")
local batch = bench.protocol.pop_batch and bench.number("BATCH") or 1
local pop = batch > 1 and bench.protocol.pop_batch or bench.protocol.pop
local finish = batch > 1 and bench.protocol.finish_batch or bench.protocol.finish
local unfinished = {}

function request()
  bench.begin()
  local taken = table.remove(unfinished)
  if taken then return finish(bench.topic, taken) end
  return pop(bench.topic, batch)
end

local function note(now_us, body)
  late_ms[#late_ms + 1] = now_us / 1000 - tonumber(body)
end

function response(status, _, answer)
  local now_us = bench.now_us()
  if batch > 1 then
    local taken = bench.protocol.popped_batch(answer)
    for _, job in ipairs(taken) do note(now_us, job.body) end
    if #taken > 0 then unfinished[#unfinished + 1] = taken end
    bench.count(#taken, 1 - bench.protocol.accepted(status, answer))
    return
  end
  local id, body = bench.protocol.popped(answer)
  if id then
    unfinished[#unfinished + 1] = id
    note(now_us, body)
    bench.count(1, 0)
  elseif bench.protocol.accepted(status, answer) == 0 then
    bench.count(0, 1)
  end
end
