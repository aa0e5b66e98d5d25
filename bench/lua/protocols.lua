-- The protocol of each kind of server: requests out, the meaning of its answers in.
--   push(job)            job: topic, id, body and delay_s (whole seconds) or due_ms (unix time)
--   push_batch(jobs)     where the server has it
--   pop(topic) finish(topic, id)
--   accepted(status, answer, many)  how many jobs or commands the answer accepts
--   popped(answer)       id and body of the job in it, or nil
--   whole_seconds        true: a due time between two seconds cannot be asked for
local HEADERS = {["Content-Type"] = "application/json"}
if os.getenv("CONNECT") == "1" then HEADERS["Connection"] = "close" end
local TTR_S = 86400 -- nothing that a load leaves unfinished may come back while another is measured
local WAIT_S = 180

local function post(path, text)
  return wrk.format("POST", path, HEADERS, text)
end

local function one_if(condition)
  return condition and 1 or 0
end

local function delay_of(job, unit_ms)
  if job.delay_s then return job.delay_s * 1000 / unit_ms end
  return math.max(0, math.floor(job.due_ms / unit_ms) - math.floor(job.now_ms / unit_ms))
end

local function id_and_body(answer)
  return answer:match('"id":%s*"([^"]+)"'), answer:match('"body":%s*"([^"]*)"')
end

-- The five endpoints of ouqiang/delay-queue and its forks.
local original = {whole_seconds = true}

local function original_job(job, when)
  return string.format('{"topic":"%s","id":"%s",%s,"ttr":%d,"body":"%s"}',
    job.topic, job.id, when, TTR_S, job.body)
end

function original.push(job)
  return post("/push", original_job(job, '"delay":' .. delay_of(job, 1000)))
end

function original.pop(topic)
  return post("/pop", string.format('{"topic":"%s"}', topic))
end

function original.finish(_, id)
  return post("/finish", string.format('{"id":"%s"}', id))
end

function original.accepted(status, answer)
  return one_if(status == 200 and answer:find('"code":%s*0'))
end

original.popped = id_and_body

-- Ours: the same, and milliseconds and arrays.
local ours = setmetatable({whole_seconds = false}, {__index = original})

local function our_job(job)
  local when = job.delay_s and '"delay":' .. job.delay_s
    or string.format('"due":%.3f', job.due_ms / 1000)
  return original_job(job, when)
end

function ours.push(job)
  return post("/push", our_job(job))
end

function ours.push_batch(jobs)
  local texts = {}
  for i, job in ipairs(jobs) do texts[i] = our_job(job) end
  return post("/push", "[" .. table.concat(texts, ",") .. "]")
end

function ours.pop_batch(topic, count)
  return post("/pop", string.format('{"topic":"%s","count":%d}', topic, count))
end

-- The jobs in an answer: id, body and receipt of each.
function ours.popped_batch(answer)
  local jobs = {}
  for id, body, receipt in answer:gmatch('"id":"([^"]+)","body":"([^"]*)","attempt":%d+,"receipt":"([^"]+)"') do
    jobs[#jobs + 1] = {id = id, body = body, receipt = receipt}
  end
  return jobs
end

function ours.finish_batch(_, jobs)
  local ids, receipts = {}, {}
  for i, job in ipairs(jobs) do ids[i], receipts[i] = job.id, job.receipt end
  return post("/finish", string.format('{"ids":["%s"],"receipts":["%s"]}',
    table.concat(ids, '","'), table.concat(receipts, '","')))
end

function ours.accepted(status, answer, many)
  if not many then return original.accepted(status, answer) end
  local _, codes = answer:gsub('"code":%s*0[,}]', "")
  return math.max(0, codes - 1) -- one of them is the envelope's
end

return {original = original, ours = ours}
