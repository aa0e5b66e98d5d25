-- What every script begins with: the key names, the clock, the record codec and whatever else the verbs share.
-- KEYS[1] is the bucket's tag, e.g. {dq_bucket_1}; KEYS[2] the ready list's name, %s stands for the topic. Every other
-- key is derived from the tag (all are listed in keys.py), so a script touches one hash slot of a Redis Cluster.
-- KEYS[3] exists only for a client that is limited to some topics: the tag, and a JSON list of them (access.py).
--
-- keeps: a job is in exactly one place: a record in `job` (delayed, ready, reserved, buried) or in `ended`.
--        A write that adds comes before the write that removes: a command that Redis refuses (memory full, a key of
--        another type) stops a script before anything is taken away. What an answer or a count says was written before
--        it was said. The record goes last: from it inspect.lua finds a job again whose verb was stopped half-way.

-- the API's codes (errors.py)
local OK, NOT_FOUND, WRONG_STATE, STALE_RECEIPT, EXISTS, UNAVAILABLE = 0, 2, 3, 4, 5, 6

local call = redis.call

-- The bucket of the call, and the names of its keys. A library of functions serves calls for several buckets.
local tag, queue_name, queue_prefix, queue_suffix
local JOBS, RUNS, ENDED, TIMERS, TOPICS, RATES, GHOSTS, BROKEN, SENT, TAKEN, SCHEDULE_TIMES, REVISIONS, SERVERS, PRIORITIES, PAUSED, REMOVED

local function name_keys()
  JOBS, RUNS, ENDED = tag .. ':job', tag .. ':run', tag .. ':ended'
  TIMERS, TOPICS, RATES = tag .. ':timers', tag .. ':topics', tag .. ':rates'
  GHOSTS, BROKEN, PRIORITIES = tag .. ':ghosts', tag .. ':broken', tag .. ':priorities'
  SENT, TAKEN = tag .. ':sent', tag .. ':taken'
  SCHEDULE_TIMES, REVISIONS, SERVERS = tag .. ':schedule_times', tag .. ':revisions', tag .. ':servers'
  PAUSED, REMOVED = tag .. ':subscribers_paused', tag .. ':removed'
  local split = string.find(queue_name, '%s', 1, true)
  queue_prefix, queue_suffix = string.sub(queue_name, 1, split - 1), string.sub(queue_name, split + 2)
end

local function clock_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The state of one call: begin() resets all of it.
local now                       -- the store's time at its beginning, in ms
local scope                     -- the topics that the client may reach, nil = all
local sender                    -- the server process that calls: it skips its own announcements
local freed                     -- topic with a reservation that ended -> what that lets happen, at the end of the call
local arrivals                  -- topic -> jobs that became ready
local earliest                  -- of the times that the call has set, ms; nil = none
local sound_topics, sound_sets  -- whose keys check_keys has checked
local read_bytes                -- of jobs that the answer holds
local done_bytes                -- of jobs that it has processed
local events                    -- event, topic, how many jobs, { ms, ... } or false, ...

-- The first step of every call. Returns the error with which it ends, having changed nothing, or nil.
-- The last argument is "GENERATION UNTIL SENDER". GENERATION is that of the layout that the server knows: with an older one it would
-- look for jobs in the wrong bucket. After UNTIL, a time of the store's clock in ms, the server no longer waits for the call:
-- done all the same, it could undo what was acknowledged since (clock.py). SENDER names the server process.
-- A " w" behind them says that it waits for replicas: with WAIT, which from Redis 7.2 on waits for what
-- the connection wrote and not for what it read. So even a call that finds everything done already writes something.
local function begin(keys, args)
  now = clock_ms()
  local generation, until_ms, waits
  generation, until_ms, sender, waits = string.match(table.remove(args), '^(%d+) (%d+) (%S+) ?(w?)$')
  if now > tonumber(until_ms) then
    return redis.error_reply(string.format('LATE %.0f is the time here, and nobody waits for this call any more', now))
  end
  if keys[1] ~= tag or keys[2] ~= queue_name then
    tag, queue_name = keys[1], keys[2]
    name_keys()
  end
  scope = keys[3] and cjson.decode(string.sub(keys[3], #tag + 1))
  freed, arrivals, earliest, sound_topics, sound_sets, read_bytes, done_bytes = {}, {}, nil, {}, {}, 0, 0
  events = {}
  local fence = tag .. ':fence'
  if tonumber(call('ZSCORE', fence, 'generation') or 0) > tonumber(generation) then
    return redis.error_reply('STALELAYOUT the jobs are distributed over another number of buckets by now')
  end
  if waits == 'w' and call('ZREM', fence, 'waited') == 0 then call('ZADD', fence, 0, 'waited') end
end

local function queue_key(topic) return queue_prefix .. topic .. queue_suffix end
local function reserved_key(topic) return tag .. ':reserved:' .. topic end
local function buried_key(topic) return tag .. ':buried:' .. topic end
local function expire_key(topic) return tag .. ':expire:' .. topic end
local function done_key(topic) return tag .. ':done:' .. topic end
local function tag_key(name) return tag .. ':tag:' .. name end
local function parcel_key(bucket) return tag .. ':parcel:' .. bucket end
local function registered_key(kind) return tag .. ':' .. kind end
local function calls_key(subscriber) return tag .. ':subscriber_calls:' .. subscriber end
local function failures_key(subscriber) return tag .. ':subscriber_failures:' .. subscriber end

-- Reports an event of `count` jobs of a topic, for the metrics and the history: after the writes, so that it is true.
-- ms: a time measured for one of them. One event may take several rows; the last rows are searched for its own.
local function tell(event, topic, count, ms)
  local length = #events
  local at = length + 1
  for known = length - 3, math.max(1, length - 11), -4 do
    if events[known] == event and events[known + 1] == topic then at = known end
  end
  if at > length then events[at], events[at + 1], events[at + 2], events[at + 3] = event, topic, 0, false end
  events[at + 2] = events[at + 2] + count
  if ms then
    local times = events[at + 3] or {}
    times[#times + 1] = ms
    events[at + 3] = times
  end
end

local PUBLISH = redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'  -- Redis has both from 7.0 on

-- The last step of every call: announces to other server processes which topics have more ready jobs, and returns the answer,
-- which replies.py reads: { the store's time; ms until the earliest of the times that were set, -1 = none; how many items are done;
-- results; times or false; how many topics have more ready jobs; topic, count, ... ; the events }.
-- results: a list, one for each item, or what this verb has to tell; times: a list of ms, one for each item.
local function end_call(results, times, looked)
  for topic, let_happen in pairs(freed) do pcall(let_happen, topic) end  -- what was done must be reported, whatever fails here
  local wait = earliest and math.max(0, earliest - now) or -1
  local answer, topics, at = { now, wait, looked or #results, results, times or false, 0 }, 0, 6
  for topic, count in pairs(arrivals) do
    call(PUBLISH, tag .. ':ready', sender .. ' ' .. count .. ' ' .. topic)
    topics = topics + 1
    answer[at + 1], answer[at + 2] = topic, count
    at = at + 2
  end
  answer[6] = topics
  for i = 1, #events do answer[at + i] = events[i] end
  return answer
end

-- Lua prints 1.7950e+12, but Redis wants all digits.
local function int(number) return string.format('%.0f', number) end

-- "+1500" is 1.5 s from now, "=1700000000000" that time itself.
local function time_of(when)
  local time = tonumber(string.sub(when, 2))
  return string.sub(when, 1, 1) == '+' and now + time or time
end

-- The answer says when the next thing is due: not later than this.
local function due_at(time_ms) earliest = math.min(earliest or time_ms, time_ms) end

-- The timer has to look at the topic then.
local function wake_at(topic, time_ms)
  call('ZADD', TIMERS, 'LT', int(time_ms), topic)
  due_at(time_ms)
end

-- The record (record.py, the twin): a header of numbers, then topic, options and body untouched, by length.
--   "0" due created ttr topic_length                                   22 bytes, if the three below are 0
--   "1" due created ttr topic_length expire retain options_length      41 bytes
-- Times in ms; expire = absolute, 0 for never; retain = 0 for none. Each number has its fixed width in digits of base 90,
-- '!' (33) to 'z': memory per job counts more than being readable.
local read_options, pack_record, unpack_record
do  -- limits their scope: Lua allows 200 local variables in a script
  local TIME, SHORT_TIME, LENGTH = 7, 5, 2
  local TIME_ZERO, SHORT_TIME_ZERO, LENGTH_ZERO = 17734604157303, 2189457303, 3003  -- "!!!!!!!", "!!!!!", "!!" as digits
  local PLAIN, FULL = 48, 49  -- "0", "1"

  -- Neither this nor number_at has a loop: they run for each job that is processed.
  local function pack_number(number, width)
    local g = number % 90
    number = (number - g) / 90
    local f = number % 90
    number = (number - f) / 90
    local e = number % 90
    number = (number - e) / 90
    local d = number % 90
    number = (number - d) / 90
    local c = number % 90
    number = (number - c) / 90
    local b = number % 90
    local a = (number - b) / 90
    local digits = string.char(a + 33, b + 33, c + 33, d + 33, e + 33, f + 33, g + 33)
    return width == TIME and digits or string.sub(digits, -width)
  end

  local function number_at(text, at, width)
    local a, b, c, d, e, f, g = string.byte(text, at, at + width - 1)
    if width == LENGTH then return a * 90 + b - LENGTH_ZERO end
    if width == SHORT_TIME then return (((a * 90 + b) * 90 + c) * 90 + d) * 90 + e - SHORT_TIME_ZERO end
    return (((((a * 90 + b) * 90 + c) * 90 + d) * 90 + e) * 90 + f) * 90 + g - TIME_ZERO
  end

  local shared_head, head_created, head_ttr, head_topic  -- jobs that are pushed in one call often share these

  function pack_record(job)
    if job.created ~= head_created or job.ttr ~= head_ttr or job.topic ~= head_topic then
      head_created, head_ttr, head_topic = job.created, job.ttr, job.topic
      shared_head = pack_number(job.created, TIME) .. pack_number(job.ttr, SHORT_TIME) .. pack_number(#job.topic, LENGTH)
    end
    local head = pack_number(job.due, TIME) .. shared_head
    if job.expire == 0 and job.retain == 0 and job.options == '' then return '0' .. head .. job.topic .. job.body end
    return '1' .. head .. pack_number(job.expire, TIME) .. pack_number(job.retain, TIME)
      .. pack_number(#job.options, SHORT_TIME) .. job.topic .. job.options .. job.body
  end

  local function is_of(kind, value) return value == nil or type(value) == kind end

  -- Whether all of a list have that type; true for an empty list.
  local function is_list_of(kind, list)
    if type(list) ~= 'table' then return list == nil end
    for _, each in ipairs(list) do
      if type(each) ~= kind then return false end
    end
    return true
  end

  local NO_OPTIONS = {}

  -- The optional fields of a job (record.py, dump_options), nil if they are unreadable.
  function read_options(text)
    if text == '' then return NO_OPTIONS end
    local readable, options = pcall(cjson.decode, text)
    if not readable or type(options) ~= 'table' then return nil end
    local is_sound = is_list_of('string', options.tags) and is_list_of('number', options.retry)
      and is_of('string', options.traceparent) and is_of('number', options.priority)
    return is_sound and options or nil
  end

  -- Returns nil if it is not a record. `tags`, `retry` and `priority` come from its options, nil if it has none.
  function unpack_record(record)
    local kind, expire, retain, options_length, topic_at = string.byte(record), 0, 0, 0, 23
    if kind ~= PLAIN and kind ~= FULL or #record < 22 then return nil end
    if kind == FULL then
      if #record < 41 then return nil end
      expire, retain, options_length = number_at(record, 23, TIME), number_at(record, 30, TIME), number_at(record, 37, SHORT_TIME)
      topic_at = 42
    end
    local options_at = topic_at + number_at(record, 21, LENGTH)
    local body_at = options_at + options_length
    if options_at < topic_at or body_at < options_at or body_at > #record + 1 then return nil end
    local packed_options = string.sub(record, options_at, body_at - 1)
    local options = read_options(packed_options)
    if not options then return nil end
    return {
      due = number_at(record, 2, TIME), created = number_at(record, 9, TIME), ttr = number_at(record, 16, SHORT_TIME),
      expire = expire, retain = retain,
      topic = string.sub(record, topic_at, options_at - 1), options = packed_options,
      body = string.sub(record, body_at), tags = options.tags, retry = options.retry,
      priority = options.priority,
    }
  end
end

-- Whether the client may not reach this topic: for it the jobs do not exist.
local function is_hidden(topic)
  if not scope then return false end
  for _, entry in ipairs(scope) do
    local start = string.sub(entry, 1, -2)
    if topic == entry or string.sub(entry, -1) == '*' and string.sub(topic, 1, #start) == start then return false end
  end
  return true
end

-- The run of a job that was handed out: "attempt step receipt started\n" and one note for each attempt that failed.
-- step counts the failures since the job was pushed or kicked: the retry schedule's position.
-- If subscribers have worked on the job, the head is "attempt step receipt started results_length\n", and the results,
-- a JSON array (see record.lua), come before the notes.
local RUN = '^(%d+) (%d+) (%S+) (%d+) ?(%d*)\n()'

local function unpack_run(run)
  local attempt, step, receipt, started, results_length, at = string.match(run or '', RUN)
  if not attempt then return { attempt = 0, step = 0, receipt = '-', started = 0, results = '', notes = '' } end
  local notes_at = at + (tonumber(results_length) or 0)
  return {
    attempt = tonumber(attempt), step = tonumber(step), receipt = receipt, started = tonumber(started),
    results = string.sub(run, at, notes_at - 1), notes = string.sub(run, notes_at),
  }
end

local function pack_run(run)
  local length = run.results ~= '' and ' ' .. #run.results or ''
  return int(run.attempt) .. ' ' .. int(run.step) .. ' ' .. run.receipt .. ' ' .. int(run.started) .. length .. '\n'
    .. run.results .. run.notes
end

-- A note: "attempt started ended length " message. The oldest go when all are longer than this.
local NOTES_LIMIT_BYTES = 8192

local function add_note(run, attempt, message)
  local notes = run.notes .. int(attempt) .. ' ' .. int(run.started) .. ' ' .. int(now) .. ' ' .. #message .. ' ' .. message
  while #notes > NOTES_LIMIT_BYTES do
    local length, at = string.match(notes, '^%d+ %d+ %d+ (%d+) ()')
    notes = string.sub(notes, at + length)
  end
  run.notes = notes
end

-- The present attempt has failed.
local function note(run, message) add_note(run, run.attempt, message) end

-- A message about a job that is not reserved: attempt 0.
local function remark(run, message) add_note(run, 0, message) end
