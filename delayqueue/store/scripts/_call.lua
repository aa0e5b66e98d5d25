-- The beginning and the end of a call, and what it remembers in between.
-- requires  _keys

-- OK, INVALID and the other codes stand before all parts, among the constants (__init__.py).

-- The state of one call: begin() resets all of it.
local now                       -- the store's time at its beginning, in ms
local scope                     -- the topics that the client may reach, nil = all
local sender                    -- the server process that calls: it skips its own announcements
local freed                     -- topic with a reservation that ended, or of whose groups more may go on -> what that lets go (_job.lua)
local firsts                    -- topics of which was asked whether jobs come before the others of their groups -> the answer
local arrivals                  -- topic -> jobs that became ready
local sound                     -- keys that check_keys has found to have the right type
local earliest                  -- of the times that the call has set, ms; nil = none
local read_bytes                -- of jobs that the answer holds
local has_awaited               -- whether somebody waits for the end of a job; nil = nobody has looked
local done_us = 0               -- of the store's time that it has taken, about
local events                    -- event, topic, how many jobs, { ms, ... } or false, ...

-- Counts the work of this call, in us of a store that is busy, about. The store does nothing else meanwhile, so a call that has done
-- enough begins no other job: the next call does. Each command counts; what it does for each of many elements, or what
-- Lua does with a job, counts on top.
local function count_work(us) done_us = done_us + us end

-- times: a factor for the limit
local function has_done_enough(times) return done_us >= (times or 1) * 2000 end

local call, count_commands = redis.call, nil
do  -- limits the scope of the rest
  local run, WRITE_US, READ_US = redis.call, 4, {}
  for command in string.gmatch('EXISTS HEXISTS HGET HLEN HMGET HSTRLEN LLEN SCARD SISMEMBER ZCARD ZMSCORE ZSCORE', '%u+') do
    READ_US[command] = 2
  end

  local function counted(command, ...)
    done_us = done_us + (READ_US[command] or WRITE_US)
    return run(command, ...)
  end

  -- Commands count unless a verb has one job to do, or bounds its work otherwise: to count takes a twentieth of their time.
  function count_commands(do_count) call = do_count and counted or run end
end

-- Lua prints 1.7950e+12, but Redis wants all digits, and takes twice as long to write a number itself. '%d' takes a third of
-- the time of '%.0f', which a store of 32 bits needs.
local int
do
  local ALL_DIGITS = string.format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f'
  function int(number) return string.format(ALL_DIGITS, number) end
end

-- "+1500" is 1.5 s from now, "=1700000000000" that time itself.
local function time_of(when)
  local time = tonumber(string.sub(when, 2))
  return string.sub(when, 1, 1) == '+' and now + time or time
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

-- The answer says when the next thing is due: not later than this.
local function due_at(time_ms) earliest = math.min(earliest or time_ms, time_ms) end

-- The timer has to look at the topic then.
local function wake_at(topic, time_ms)
  call('ZADD', TIMERS, 'LT', int(time_ms), topic)
  due_at(time_ms)
end

-- Reports an event of `count` jobs of a topic, for the metrics and the history: after the writes, so that it is true.
-- ms: a time measured for one of them. One event may take several rows; the last rows are searched for its own.
local function tell(event, topic, count, ms)
  local length = #events
  if length == 0 then  -- the only one of most calls
    events = { event, topic, count, ms and { ms } or false }
    return
  end
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

-- The first step of every call. Returns the error with which it ends, having changed nothing, or nil.
-- The last two arguments are for it: a time of the store's clock in ms, and "GENERATION SENDER WAITS". After that time the server no longer
-- waits for the call: done all the same, it could undo what was acknowledged since (server.py). GENERATION is that of the layout that
-- the server knows: with an older one it would look for jobs in the wrong bucket (change.py). SENDER names the server process.
-- WAITS is 1 if it waits for replicas: with WAIT, which from Redis 7.2 on waits for what
-- the connection wrote and not for what it read. So even a call that finds everything done already writes something.
local begin
do
  local control, generation, waits  -- the last argument of the last call, and what it says

  local function clock_ms()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end

  function begin(keys, args)
    now = clock_ms()
    local until_ms, written = args[#args - 1], args[#args]
    args[#args - 1], args[#args] = nil, nil
    if now > tonumber(until_ms) then
      return redis.error_reply(string.format('LATE %.0f is the time here, and nobody waits for this call any more', now))
    end
    if keys[1] ~= tag or keys[2] ~= queue_name then
      tag, queue_name = keys[1], keys[2]
      name_keys()
    end
    if written ~= control then
      control = written
      generation, sender, waits = string.match(written, '^(%d+) (%S+) ([01])$')
      generation = tonumber(generation)
    end
    scope = keys[3] and cjson.decode(string.sub(keys[3], #tag + 1))
    freed, firsts, arrivals, sound, events, earliest, has_awaited, read_bytes, done_us = {}, {}, {}, {}, {}, nil, nil, 0, 0
    local fence = tag .. ':fence'
    if tonumber(call('ZSCORE', fence, 'generation') or 0) > generation then
      return redis.error_reply('STALELAYOUT the number of buckets is being changed, or was')
    end
    if waits == '1' and call('ZREM', fence, 'waited') == 0 then call('ZADD', fence, 0, 'waited') end
    count_commands(true)
  end
end

-- Tells all server processes, this one included: "sender count topic" of jobs that became ready, "sender 0 id" of an awaited job
-- that has ended.
local announce
do
  local PUBLISH = redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'  -- Redis has both from 7.0 on

  function announce(count, name) call(PUBLISH, tag .. ':ready', sender .. ' ' .. count .. ' ' .. name) end
end

local let_others_go  -- _job.lua

-- The last step of every call: announces to other server processes which topics have more ready jobs, and returns the answer,
-- which call.py reads, one flat list, since each table in it costs as much as a command: the store's time; ms until the earliest
-- of the times that were set, -1 = none; how many items are done; how many results, times and topics follow; those; the events.
-- results: one for each item, or what this verb has to tell; times: ms for each item, nil = it has none. The topics have more
-- ready jobs, and come with how many.
local function end_call(results, times, looked)
  for topic, its in pairs(freed) do pcall(let_others_go, topic, its) end  -- what was done must be reported, whatever fails here
  local wait = earliest and math.max(0, earliest - now) or -1
  local at, topics = 6, 0
  local answer = { now, wait, looked or #results, #results, times and #times or 0, 0 }
  for i = 1, #results do answer[at + i] = results[i] end
  at = at + #results
  for i = 1, times and #times or 0 do answer[at + i] = times[i] end
  at = at + answer[5]
  for topic, count in pairs(arrivals) do
    announce(count, topic)
    topics = topics + 1
    answer[at + 1], answer[at + 2] = topic, count
    at = at + 2
  end
  answer[6] = topics
  for i = 1, #events do answer[at + i] = events[i] end
  return answer
end
