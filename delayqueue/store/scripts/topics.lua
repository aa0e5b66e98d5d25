-- Counts the jobs of topics. Changes nothing.
-- requires  _life
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  topics
-- returns for each topic { delayed, ready, reserved, buried, ms since the oldest ready job was due, or -1,
--                          paused until ms (0 = until resumed, -1 = not paused), limit (JSON, "" = none) };
--         for the first ones only where all were too much work
local GHOSTS_SKIPPED = 100  -- at the head of a ready list, to find its oldest job
local now = now_ms()

local function oldest_age(topic)
  for _, id in ipairs(call('LRANGE', queue_key(topic), 0, GHOSTS_SKIPPED)) do
    if has_done_enough() then break end
    local job = read_job(id)
    if job and job.topic == topic and state_of(id, job) == 'ready' then return math.max(0, now - job.due) end
  end
  return -1
end

local function count(topic)
  local ready = call('LLEN', queue_key(topic)) - (call('HGET', GHOSTS, topic) or 0)
  local settings = settings_of(topic)
  return {
    delay_count(topic), ready, call('ZCARD', reserved_key(topic)), call('ZCARD', buried_key(topic)),
    ready > 0 and oldest_age(topic) or -1, is_paused(settings, now) and settings.paused_until or -1,
    settings.limit and cjson.encode(settings.limit) or '',
  }
end

local answer = {}
for i, topic in ipairs(ARGV) do
  if has_done_enough() then break end
  answer[i] = count(topic)
end
return answer
