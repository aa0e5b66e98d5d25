-- Pushes jobs as fast as they are taken. BATCH jobs a request; each sleeps DELAY_FROM to DELAY_TO seconds,
-- or until DUE (unix seconds); COUNT ends it.
local bench = dofile("bench.lua")
local batch = bench.protocol.push_batch and bench.number("BATCH") or 1
local delay_from, delay_to = bench.number("DELAY_FROM"), bench.number("DELAY_TO")
local due_ms = bench.number("DUE") * 1000
local MS_DIGITS = 13
local zeros = string.rep("0", bench.number("BODY_BYTES") - MS_DIGITS) -- a body is the due time, for drain.lua

function init()
  bench.seed()
end

local function make_job()
  local job = {topic = bench.topic, id = bench.next_id(), now_ms = bench.now_us() / 1000}
  if due_ms > 0 then
    job.due_ms = due_ms
  else
    job.delay_s = math.random(delay_from, delay_to)
  end
  job.body = zeros .. string.format("%013d", job.due_ms or job.now_ms + 1000 * job.delay_s)
  return job
end

function request()
  bench.begin()
  if batch <= 1 then return bench.protocol.push(make_job()) end
  local jobs = {}
  for i = 1, batch do jobs[i] = make_job() end
  return bench.protocol.push_batch(jobs)
end

function response(status, _, answer)
  local accepted = bench.protocol.accepted(status, answer, batch > 1)
  bench.count(accepted, math.max(1, batch) - accepted)
end
