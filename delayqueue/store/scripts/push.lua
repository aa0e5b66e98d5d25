-- Adds jobs, or replaces those whose id already exists.
-- requires  _job, _room
-- waits  pushes
-- needs  sync, replicas
-- ARGV  for each job:
--       id, topic, when ("+" delay in ms, or "=" due in ms), ttr ms, expire (ms after due, 0 = never),
--       retain ms, if_exists (replace | keep | fail), 1 = fail if another topic has the id, options (JSON or ""), body
--       A push with the `key` (of its options) and topic that the job of its id has, live or kept, is a repetition: nothing
--       changes. With another key, "keep" keeps live jobs only.
-- returns for each job, of the first ones, a code, or { code, the other topic that had its id }, or { FULL, how many jobs its topic may have
--         in this bucket, and in all }
-- keeps: a replaced job is never delivered as it was: it leaves its old place in the same script. A client that
--        may reach some topics only replaces no job of another. Its id and the time of its push identify a job, so two pushes
--        of an id never have the same time.
local STRIDE = 10
local WRITE_US = 4  -- a job; a tag takes 1 more
local GROUP_US = 14  -- what a group with ready ones takes more, when all are written
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
  groups.let_pass(id, old)
  call('HDEL', RUNS, id)
  if old.expire > 0 then call('ZREM', expire_key(old.topic), id) end
  if is_for_set(old) then call('HDEL', PRIORITIES, id) end
end

-- Enters the topic among those of the bucket; a topic with a timer is there. Returns its timer, false = it has none.
local function enter_topic(topic)
  local timer = tonumber(call('ZSCORE', TIMERS, topic)) or false
  if not timer then call('HSETNX', TOPICS, topic, '') end
  return timer
end

-- Whether the job goes among the delayed ones. One that is due now queues behind due jobs that no tick has moved so far, unless it
-- has its place already.
local function is_delayed(job, timer) return job.due > now or timer and timer <= now and not job.is_late end

local function wake_by(topic, timer, time)
  if timer and timer <= time then due_at(time) else wake_at(topic, time) end
end

-- Raises if a key that a job needs has the wrong type. For a second after all keys of a topic were found sound, none is asked: those
-- that a new job is not written to matter when it is looked for later. Returns whether it has asked.
local KNOWN_MS = 1000
local known, known_since = {}, 0  -- the topics' ready lists; ms

local function check_unknown(job)
  local queue = queue_key(job.topic)
  if math.abs(now - known_since) > KNOWN_MS then known, known_since = {}, now end
  if known[queue] then return false end
  check_keys(job)
  known[queue] = true
  return true
end

local function put(id, job, waits)
  if not waits then return add_ready(id, job) end
  if is_for_set(job) then note_priority(id, job) end
  delay_add(job.topic, { job.due, id })
end

-- Takes out what `put` may have written before it failed.
local function withdraw(id, job)
  call('HDEL', JOBS, id)
  if not is_for_set(job) then return end
  redis.pcall('HDEL', PRIORITIES, id)
  redis.pcall('ZREM', set_of(job), rank_of(id, job))
  if job.group then pcall(groups.leave, groups.lane_of(job), job.topic, job.group) end
end

-- Adds a job that is the only one of its call, without tags, expiry and max_wait: most pushes, unless they are many. Returns a code;
-- nil if its id is taken or its topic may be full, and nothing has changed.
-- keeps: if a key of the wrong type prevents its place, it has no record either.
local function push_alone(id, job)
  local topic = job.topic
  if not pcall(check_unknown, job) then return UNAVAILABLE end
  if room.bound_of(topic) then return nil end
  local timer = enter_topic(topic)
  local waits = is_delayed(job, timer)
  if waits and not pcall(delay_check, topic) then return UNAVAILABLE end
  if call('HSETNX', JOBS, id, pack_record(job)) == 0 then return nil end
  if not pcall(put, id, job, waits) then
    withdraw(id, job)
    return UNAVAILABLE
  end
  if waits then wake_by(topic, timer, job.due) else arrive(asked_as(job)) end
  tell('pushed', topic, 1)
  return OK
end

-- The additions of a call are written together: one command per key instead of one per job.
local records, delayed, ready, wake, tagged, ranked, grouped, priorities
local added  -- topic -> how many jobs these add to it
local has_ended  -- whether the bucket has kept records
local timers  -- topic -> its entry in TIMERS, false = it has none

local function clear()
  records, delayed, ready, wake, tagged, ranked, grouped, priorities, added = {}, {}, {}, {}, {}, {}, {}, {}, {}
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
  for key, ranks in pairs(ranked) do
    local job = ranks.job
    if job.call then enter_called(job.topic) end
    call('ZADD', key, unpack(ranks))
    arrive(asked_as(job), #ranks / 2)
  end
  groups.enter_all(grouped)
  for topic, time in pairs(wake) do wake_by(topic, timers[topic], time) end
  for name, ids in pairs(tagged) do call('SADD', tag_key(name), unpack(ids)) end
end

local function must_wait(job)
  local topic = job.topic
  if timers[topic] == nil then timers[topic] = enter_topic(topic) end
  return is_delayed(job, timers[topic])
end

-- Raises if a key that a new job needs has the wrong type.
local function check_new(job)
  if check_unknown(job) then return end
  local topic = job.topic
  local waits, queue = must_wait(job), queue_key(topic)
  local place = waits and delay_key(topic, job.due) or set_of(job) or queue
  if not sound[place] then
    if waits then delay_check(topic) end
    call(place == queue and 'LLEN' or 'ZCARD', place)
    sound[place] = true
  end
  if job.expire > 0 then call('ZCARD', expire_key(topic)) end
  check_labels(job)
end

-- Makes room for a job in its topic. Returns a code, and how many jobs it may have, here and in all buckets, if it is full.
local function make_room(job)
  local topic = job.topic
  local is_sound, excess, bound = pcall(room.excess, topic, added[topic] or 0)
  if not is_sound then return UNAVAILABLE end
  if excess <= 0 then return OK end
  if not bound.drops then return FULL, bound.most, bound.all end
  write()  -- the jobs of this call count, and can give way
  clear()
  has_ended = true  -- one that gave way can have left a record
  local is_whole, has_room = pcall(room.make, topic, excess, job.group)
  if not is_whole then return UNAVAILABLE end
  if has_room then return OK end
  return FULL, bound.most, bound.all
end

local function place(id, job)
  added[job.topic] = (added[job.topic] or 0) + 1
  if must_wait(job) then
    append(delayed, job.topic, job.due, id)
    soonest(job.topic, job.due)
  elseif is_for_set(job) then
    local key = set_of(job)
    append(ranked, key, groups.score_of(job), rank_of(id, job))
    ranked[key].job = job  -- one of them: its topic, and whether they have calls
    if groups.add(grouped, job) then count_work(GROUP_US) end
  else
    append(ready, job.topic, id)
  end
  if is_for_set(job) then
    priorities[#priorities + 1] = id
    priorities[#priorities + 1] = int(priority_of(job))
  end
  if job.expire > 0 then
    call('ZADD', expire_key(job.topic), int(job.expire), id)
    soonest(job.topic, job.expire)
  end
  for _, name in ipairs(job.tags or {}) do append(tagged, name, id) end
end

-- A job with `max_wait` (of its options, ms) is due at the latest so long after the first of the pushes that replaced each other
-- since nobody has had it: its options keep the time, `since`. It expires as if it had been pushed late.
local function bound_wait(id, job, old)
  local since = now
  local is_waiting = old and run_of(id).attempt == 0 and not call('ZSCORE', buried_key(old.topic), id)
  if is_waiting then since = math.min(now, old.since or old.created) end
  job.options = with_option(job.options, 'since', int(since))
  local latest = since + job.max_wait
  if job.due <= latest then return end
  if job.expire > 0 then job.expire = job.expire - job.due + math.max(now, latest) end
  job.due, job.is_late = latest, latest <= now
end

-- Where the order of groups is strict, no two pushes of a group have the same time: jobs that are due together go in the order of
-- their pushes. That of the last push can be ahead of the clock by as many ms as there were pushes: the library remembers it (_groups.lua)
-- until the clock has passed it.
local function keep_order(job)
  local bound = job.group and room.bound_of(job.topic)
  if not bound or not bound.keeps_order then return end
  local since = now - groups.pushed_since
  if math.abs(since) > KNOWN_MS then
    groups.pushed_since = now
    for name, time in pairs(groups.pushed) do
      if time < now or since < 0 then groups.pushed[name] = nil end  -- or the clock was put back
    end
  end
  local name = queue_key(job.topic) .. '\0' .. job.group
  job.created = math.max(job.created, (groups.pushed[name] or 0) + 1)
  groups.pushed[name] = job.created
end

-- Returns a code, and the other topic that had the id, or what make_room returns.
local function push(id, job, if_exists, is_strict, old_record, ended)
  local old = old_record and unpack_record(old_record)
  count_work(WRITE_US + #job.body / 768 + (job.tags and #job.tags or 0))
  if old and is_hidden(old.topic) or ended and is_hidden_ended(ended) then return EXISTS end
  local former = old or ended and job_of_ended(ended)
  local other = former and former.topic ~= job.topic and former.topic or nil
  if former and job.key and former.key == job.key and not other then return OK end
  if old or ended then
    if if_exists == 'fail' or other and is_strict then return EXISTS, other end
    if if_exists == 'keep' and (old or not job.key) then return OK, other end
  end
  if job.max_wait and not pcall(bound_wait, id, job, old) then return UNAVAILABLE, other end
  -- before anything is written: a command that fails half-way would leave the jobs of other topics in no index
  if not pcall(former and check_keys or check_new, job) or former and not pcall(check_keys, former) then return UNAVAILABLE, other end
  if not old or other then
    local code, most, all = make_room(job)
    if code ~= OK then return code, most, all end
  end
  if former and former.created >= now and former.created < now + AHEAD_MS then job.created = former.created + 1 end
  keep_order(job)
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
  local options = read_options(ARGV[at + 8])
  return {
    topic = ARGV[at + 1], due = due, created = now, ttr = tonumber(ARGV[at + 3]), expire = expire > 0 and due + expire or 0,
    retain = tonumber(ARGV[at + 5]), options = ARGV[at + 8], body = ARGV[at + 9],
    tags = options.tags, priority = options.priority, key = options.key, call = options.call, group = options.group,
    max_wait = options.max_wait,
  }
end

-- The job of a call that has one, without tags, expiry and max_wait, whose id has no kept record; else nil.
local function only_job(ARGV)
  if #ARGV > STRIDE or ARGV[5] ~= '0' then return nil end
  local job = job_at(ARGV, 1)
  if job.tags or job.max_wait or call('HGET', ENDED, ARGV[1]) then return nil end
  return job
end

return function(ARGV)
  count_commands(#ARGV > STRIDE)
  local job = only_job(ARGV)
  local code = job and push_alone(ARGV[1], job)
  if code then return { code } end
  local results, seen = {}, {}
  timers = {}
  clear()
  has_ended = call('EXISTS', ENDED) == 1
  for at = 1, #ARGV, STRIDE do
    if has_done_enough() then break end
    local id = ARGV[at]
    if seen[id] then  -- the second one replaces the first
      write()
      clear()
    end
    seen[id] = true
    local old, ended = call('HGET', JOBS, id), has_ended and call('HGET', ENDED, id)
    local code, other, all = push(id, job_at(ARGV, at), ARGV[at + 6], ARGV[at + 7] == '1', old, ended)
    results[#results + 1] = other and { code, other, all } or code
  end
  write()
  return results
end
