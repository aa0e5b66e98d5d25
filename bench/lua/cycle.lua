-- The whole life of a job, push -> pop -> finish, in balance: one of each in turn. Counts the finished. The topic holds
-- jobs that were pushed ahead, so that a server that makes jobs ready once a second has some.
local bench = dofile("bench.lua")
local body = string.rep("b", bench.number("BODY_BYTES"))
local DELAY_S = 1 -- ouqiang/delay-queue takes nothing less
local pushed, asked, unfinished = 0, 0, {}

function request()
  local id = table.remove(unfinished)
  if id then
    bench.begin()
    bench.count(1, 0)
    return bench.protocol.finish(bench.topic, id)
  end
  if pushed > asked then
    asked = asked + 1
    return bench.protocol.pop(bench.topic)
  end
  pushed = pushed + 1
  return bench.protocol.push({topic = bench.topic, id = bench.next_id(), delay_s = DELAY_S, body = body})
end

function response(status, _, answer)
  local id = bench.protocol.popped(answer)
  if id then unfinished[#unfinished + 1] = id end
  if bench.protocol.accepted(status, answer) == 0 then bench.count(0, 1) end
end
