-- Put before every script: the clock, the key names, the record codec and the steps that the verbs share.
-- KEYS[1] is the bucket's tag, e.g. {dq_bucket_1}; KEYS[2] the ready list's name with %s for the topic. Every other
-- key is derived from the tag (all are listed in keys.py), so a script touches one hash slot of a Redis Cluster.
--
-- keeps: a job is in exactly one place: a record in `job` (delayed, ready, reserved, buried) or in `ended`.
--        A write that adds stands before the write that removes: a command that Redis refuses (memory full, a key of
--        another type) stops a script before anything is taken away.

local tag, queue_name = KEYS[1], KEYS[2]
local call = redis.call

-- the API's codes (errors.py)
local OK, NOT_FOUND, WRONG_STATE, STALE_RECEIPT, EXISTS, UNAVAILABLE = 0, 2, 3, 4, 5, 6

local JOBS, RUNS, ENDED = tag .. ':job', tag .. ':run', tag .. ':ended'
local TIMERS, TOPICS = tag .. ':timers', tag .. ':topics'
local GHOSTS, BROKEN = tag .. ':ghosts', tag .. ':broken'

local queue_split = string.find(queue_name, '%s', 1, true)
local queue_prefix, queue_suffix = string.sub(queue_name, 1, queue_split - 1), string.sub(queue_name, queue_split + 2)

local function queue_key(topic) return queue_prefix .. topic .. queue_suffix end
local function reserved_key(topic) return tag .. ':reserved:' .. topic end
local function buried_key(topic) return tag .. ':buried:' .. topic end
local function expire_key(topic) return tag .. ':expire:' .. topic end
local function done_key(topic) return tag .. ':done:' .. topic end
local function tag_key(name) return tag .. ':tag:' .. name end

-- Lua prints 1.7950e+12 where Redis wants all digits.
local function int(number) return string.format('%.0f', number) end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- "+1500" is 1.5 s from now, "=1700000000000" that very time.
local function time_of(when, now)
  local time = tonumber(string.sub(when, 2))
  return string.sub(when, 1, 1) == '+' and now + time or time
end

local function wake_at(topic, time_ms) call('ZADD', TIMERS, 'LT', int(time_ms), topic) end

-- Tells the other server processes that `topic` has `count` more ready jobs. `sender` lets a process skip its own.
local function announce(sender, topic, count) call('PUBLISH', tag .. ':ready', sender .. ' ' .. count .. ' ' .. topic) end

-- The record: "1 ttr due lead expire retain topic_length options_length\n" topic options body (record.py, the twin).
-- Times in ms; lead = due - created; expire = absolute, 0 for never; retain = 0 for none.
local RECORD = '^1 (%d+) (%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+)\n()'

local function pack_record(job)
  return '1 ' .. int(job.ttr) .. ' ' .. int(job.due) .. ' ' .. int(job.due - job.created) .. ' ' .. int(job.expire)
    .. ' ' .. int(job.retain) .. ' ' .. #job.topic .. ' ' .. #job.options .. '\n' .. job.topic .. job.options .. job.body
end

-- Returns nil for what is no record.
local function unpack_record(record)
  local ttr, due, lead, expire, retain, topic_length, options_length, at = string.match(record, RECORD)
  if not ttr then return nil end
  local options_at = at + topic_length
  local body_at = options_at + options_length
  if body_at > #record + 1 then return nil end
  return {
    ttr = tonumber(ttr), due = tonumber(due), created = due - lead, expire = tonumber(expire), retain = tonumber(retain),
    topic = string.sub(record, at, options_at - 1), options = string.sub(record, options_at, body_at - 1),
    body = string.sub(record, body_at),
  }
end

local function options_of(job)
  if job.options == '' then return {} end
  local readable, options = pcall(cjson.decode, job.options)
  return readable and options or {}
end

-- The run of a job that was handed out: "attempt step receipt started\n" and one note for each attempt that failed.
-- step counts the failures since the job was pushed or kicked: the retry schedule's position.
local RUN = '^(%d+) (%d+) (%S+) (%d+)\n()'

local function unpack_run(run)
  local attempt, step, receipt, started, at = string.match(run or '', RUN)
  if not attempt then return { attempt = 0, step = 0, receipt = '-', started = 0, notes = '' } end
  return {
    attempt = tonumber(attempt), step = tonumber(step), receipt = receipt, started = tonumber(started),
    notes = string.sub(run, at),
  }
end

local function pack_run(run)
  return int(run.attempt) .. ' ' .. int(run.step) .. ' ' .. run.receipt .. ' ' .. int(run.started) .. '\n' .. run.notes
end

-- A note: "attempt started ended length " message. The oldest go when all are longer than this.
local NOTES_LIMIT_BYTES = 8192

local function note(run, message, now)
  local notes = run.notes .. int(run.attempt) .. ' ' .. int(run.started) .. ' ' .. int(now) .. ' ' .. #message .. ' ' .. message
  while #notes > NOTES_LIMIT_BYTES do
    local length, at = string.match(notes, '^%d+ %d+ %d+ (%d+) ()')
    notes = string.sub(notes, at + length)
  end
  run.notes = notes
end
