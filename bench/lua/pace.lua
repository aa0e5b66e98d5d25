-- Pushes RATE jobs a second, each due after a random 1 to 5 seconds; the due time stands in the body.
local bench = dofile("bench.lua")
local interval_us = 1000000 / bench.number("RATE")
local LEAST_S, MOST_S = 1, 5
local slot_us = 0

function init()
  bench.seed()
end

-- Milliseconds until this connection may send: the slots are shared by all of them.
function delay()
  local now_us = bench.now_us()
  slot_us = (slot_us == 0 and now_us or slot_us) + interval_us
  return math.max(0, math.floor((slot_us - now_us) / 1000))
end

local function due_ms(now_ms)
  if bench.protocol.whole_seconds then
    return (math.floor(now_ms / 1000) + math.random(LEAST_S, MOST_S)) * 1000
  end
  return math.floor(now_ms) + math.random(LEAST_S * 1000, MOST_S * 1000)
end

function request()
  bench.begin()
  local job = {topic = bench.topic, id = bench.next_id(), now_ms = bench.now_us() / 1000}
  job.due_ms = due_ms(job.now_ms)
  job.body = string.format("%013d", job.due_ms)
  return bench.protocol.push(job)
end

function response(status, _, answer)
  local accepted = bench.protocol.accepted(status, answer)
  bench.count(accepted, 1 - accepted)
end
