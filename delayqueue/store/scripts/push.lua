-- Adds jobs, or replaces those whose id already exists.
-- requires  _job
-- layout  raises
-- waits  pushes
-- needs  sync, replicas
-- KEYS  tag, queue name
-- ARGV  for each job:
--       id, topic, when ("+" delay in ms, or "=" due in ms), ttr ms, expire (ms after due, 0 = never),
--       retain ms, if_exists (replace | keep | fail; "strict" after it: fail if another topic has the id), options (JSON or
--       ""), body
-- returns for each job, of the first ones, a code, or { code, the other topic that had its id }
-- keeps: a replaced job is never delivered as it was: it leaves its old place in the same script. A client that
--        may reach some topics only replaces no job of another. Its id and the time of its push identify a job, so two pushes
--        of an id never have the same time.
local STRIDE = 9
local AHEAD_MS = 1000  -- a job that is replaced was pushed now, or later: before the clock was put back a little

local function append(lists, name, first, second)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  list[#list + 1] = first
  list[#list + 1] = second
end

local function replace(id, old, record)
  call('HSET', JOBS, id, record)
  leave(id, old)
  untag(id, old)
  call('HDEL', RUNS, id)
  if old.expire > 0 then call('ZREM', expire_key(old.topic), id) end
  if old.priority then call('HDEL', PRIORITIES, id) end
end

-- The additions of a call are written together: one command per key instead of one per job.
local records, delayed, ready, wake, tagged, ranked, priorities
local timers  -- topic -> its entry in TIMERS, false = it has none

local function clear()
  records, delayed, ready, wake, tagged, ranked, priorities = {}, {}, {}, {}, {}, {}, {}
end

local function soonest(topic, time)
  wake[topic] = math.min(wake[topic] or time, time)
end

-- Memory full: Redis refuses the first of these commands, with nothing changed.
local function write()
  if #records > 0 then call('HSET', JOBS, unpack(records)) end
  records = {}  -- they can be megabytes
  for topic, entries in pairs(delayed) do delay_add(topic, entries) end
  for topic, ids in pairs(ready) do
    call('RPUSH', queue_key(topic), unpack(ids))
    arrive(topic, #ids)
  end
  if #priorities > 0 then call('HSET', PRIORITIES, unpack(priorities)) end
  for topic, ranks in pairs(ranked) do
    call('ZADD', ranked_key(topic), unpack(ranks))
    arrive(topic, #ranks / 2)
  end
  for topic, time in pairs(wake) do
    local timer = timers[topic]
    if timer and timer <= time then due_at(time) else wake_at(topic, time) end
  end
  for name, ids in pairs(tagged) do call('SADD', tag_key(name), unpack(ids)) end
end

-- Whether the topic has due jobs that no tick has moved so far: a job that is due now queues behind them.
local function is_overdue(topic)
  local timer = timers[topic]
  if timer == nil then
    call('HSETNX', TOPICS, topic, '')
    timer = tonumber(call('ZSCORE', TIMERS, topic)) or false
    timers[topic] = timer
  end
  return timer and timer <= now
end

local function must_wait(job) return is_overdue(job.topic) or job.due > now end

-- Raises if a key that a new job needs has the wrong type. For a second after all keys of a topic were found sound, only those are
-- asked that the job is written to: the others matter when it is looked for later.
local KNOWN_MS = 1000
local known, known_since = {}, 0  -- the topics' ready lists; ms

local function check_new(job)
  local topic = job.topic
  local queue = queue_key(topic)
  if math.abs(now - known_since) > KNOWN_MS then known, known_since = {}, now end
  if not known[queue] then
    check_keys(job)
    known[queue] = true
    return
  end
  local waits = must_wait(job)
  local place = waits and delay_key(topic, job.due) or job.priority and ranked_key(topic) or queue
  if not sound[place] then
    if waits then delay_check(topic) end
    call(place == queue and 'LLEN' or 'ZCARD', place)
    sound[place] = true
  end
  if job.expire > 0 then call('ZCARD', expire_key(topic)) end
  check_labels(job)
end

local function place(id, job)
  if must_wait(job) then
    append(delayed, job.topic, job.due, id)
    soonest(job.topic, job.due)
  elseif job.priority then
    append(ranked, job.topic, int(job.priority), rank_of(id, job))
  else
    append(ready, job.topic, id)
  end
  if job.priority then
    priorities[#priorities + 1] = id
    priorities[#priorities + 1] = int(job.priority)
  end
  if job.expire > 0 then
    call('ZADD', expire_key(job.topic), int(job.expire), id)
    soonest(job.topic, job.expire)
  end
  for _, name in ipairs(job.tags or {}) do append(tagged, name, id) end
end

-- Returns a code, and the other topic that had the id.
local function push(id, job, if_exists, old_record, ended)
  local old = old_record and unpack_record(old_record)
  count_job(#job.body, job)
  count_work(4)
  if old then count_job(#old_record, old) end
  if old and is_hidden(old.topic) or ended and is_hidden_ended(ended) then return EXISTS end
  local former = old or ended and job_of_ended(ended)
  local other = former and former.topic ~= job.topic and former.topic or nil
  if old or ended then
    local word, strict = string.match(if_exists, '^(%a+) ?(%a*)$')
    if word == 'fail' or other and strict == 'strict' then return EXISTS, other end
    if word == 'keep' then return OK, other end
  end
  -- before anything is written: a command that fails half-way would leave the jobs of other topics in no index
  if not pcall(former and check_keys or check_new, job) or former and not pcall(check_keys, former) then return UNAVAILABLE, other end
  if former and former.created >= now and former.created < now + AHEAD_MS then job.created = former.created + 1 end
  local record = pack_record(job)
  if old then replace(id, old, record) end
  records[#records + 1] = id
  records[#records + 1] = record
  place(id, job)
  if ended then forget_ended(id, ended) end  -- after the first write that takes memory
  tell('pushed', job.topic, 1)
  return OK, other
end

local function job_at(ARGV, at)
  local due = time_of(ARGV[at + 2])
  local expire = tonumber(ARGV[at + 4])
  local options = read_options(ARGV[at + 7])
  return {
    topic = ARGV[at + 1], due = due, created = now, ttr = tonumber(ARGV[at + 3]), expire = expire > 0 and due + expire or 0,
    retain = tonumber(ARGV[at + 5]), options = ARGV[at + 7], body = ARGV[at + 8],
    tags = options.tags, priority = options.priority,
  }
end

return function(ARGV)
  local results, seen = {}, {}
  timers = {}
  clear()
  local has_ended = call('EXISTS', ENDED) == 1
  for at = 1, #ARGV, STRIDE do
    if has_done_enough() then break end
    local id = ARGV[at]
    if seen[id] then  -- the second one replaces the first
      write()
      clear()
    end
    seen[id] = true
    local code, other = push(id, job_at(ARGV, at), ARGV[at + 6], call('HGET', JOBS, id), has_ended and call('HGET', ENDED, id))
    results[#results + 1] = other and { code, other } or code
  end
  write()
  return results
end
