-- The rules of a whole bucket, for inspect.lua: each function proves one for a key's entry, says where it is broken, and
-- repairs it.
-- keeps: without `repairs` nothing is written. Findings hold at this moment, and are repaired in the same call.
-- requires  _job
local UNIT_BYTES = 2048  -- a record counts as another entry for each of these

-- The state of a call.
local repairs, left     -- whether to repair, how much more to check
local looked            -- entries
local findings, suspects
local listed_topics     -- whose entry in `topics` was checked
local lists             -- topic -> ids in its ready list

local function begin_checks(with_repairs, limit)
  repairs, left, looked, findings, suspects, listed_topics, lists = with_repairs, limit, 0, {}, {}, {}, {}
end

-- name = a topic, or a key without the tag; repair = nil: it must be repaired by hand.
local function found(kind, name, id, repair)
  for _, part in ipairs({ kind, name, id, '0' }) do findings[#findings + 1] = part end
  if repairs and repair then
    repair()
    findings[#findings] = '1'
  end
end

local function spend(entries)
  local ENTRY_US = 2  -- beside the commands
  left = left - entries
  count_work(entries * ENTRY_US)
end

-- A key of the wrong type keeps its topic's jobs from being checked. It is found first, and they are checked after that.
local function try(look, ...)
  local done, result = pcall(look, ...)
  if done then return result end
  local reason = type(result) == 'table' and result.err or tostring(result)
  if not string.find(reason, 'WRONGTYPE', 1, true) then error(result) end
  return '0'
end

local function job_of(id)
  local record = call('HGET', JOBS, id)
  if not record then return nil end
  spend(#record / UNIT_BYTES)
  return unpack_record(record), true
end

local function ended_of(id)
  local ended = call('HGET', ENDED, id)
  if ended then spend(#ended / UNIT_BYTES) end
  return ended
end

-- place_of: the topic, if this was a job's place and there is no record: the store has dropped that, as a job that ends leaves its
-- place first.
local function found_entry(key, id, repair, place_of)
  if not place_of or call('HEXISTS', ENDED, id) == 1 then return found('entry', string.sub(key, #tag + 2), id, repair) end
  found('lost', place_of, id, repair)
  tell('lost', place_of, 1)
end

local function exists(hash, id) return call('HEXISTS', hash, id) == 1 end

local function check_listed(topic)
  if listed_topics[topic] then return end
  listed_topics[topic] = true
  if not exists(TOPICS, topic) then found('topic', topic, '', function() call('HSETNX', TOPICS, topic, '') end) end
end

-- jobs

-- For an entry in `priorities`; false: for a job that should have one.
local function check_priority(id, entry)
  local job = job_of(id)
  local priority = job and is_for_set(job) and int(priority_of(job)) or nil
  if priority == (entry or nil) then return end
  found('priority', job and job.topic or 'priorities', id, function()
    if job then note_priority(id, job) else call('HDEL', PRIORITIES, id) end
  end)
end

-- Lua allows 200 local variables in a script, including those of its parts: this block limits the scope of its own.
local check_tags, check_jobs
do
  function check_tags(id, job)
    spend(1)  -- to read them, too
    for _, name in ipairs(job.tags or {}) do
      if call('SISMEMBER', tag_key(name), id) == 0 then
        found('tag', name, id, function() call('SADD', tag_key(name), id) end)
      end
    end
  end

  local function check_expiry(id, job)
    if job.expire > now and not call('ZSCORE', expire_key(job.topic), id) then
      found('expiry', job.topic, id, function() enter_expiry(id, job) end)
    end
  end

  local function find_again(id, job)
    enter_expiry(id, job)
    if job.due > now then delay_job(id, job, job.due) else make_ready(id, job) end
  end

  -- A job is reserved if its run has a receipt; otherwise its place among the delayed jobs counts.
  local function leave_all_but_one(id, job, places)
    local held = run_of(id).receipt ~= '-'
    local kept = places.reserved and held and 'reserved' or places.delayed and 'delayed' or 'buried'
    if kept ~= 'reserved' then call('ZREM', reserved_key(job.topic), id) end
    if kept ~= 'delayed' then delay_remove(job.topic, id, job.due) end
    if kept ~= 'buried' then call('ZREM', buried_key(job.topic), id) end
  end

  -- A job is in one place. is_listed(topic, id) = nil: not known in this call.
  local function check_place(id, job, places, is_listed)
    local count = (places.reserved and 1 or 0) + (places.delayed and 1 or 0) + (places.buried and 1 or 0)
    if count > 1 then
      found('double', job.topic, id, function() leave_all_but_one(id, job, places) end)
    elseif count == 0 and not is_ranked(id, job) then
      local listed = is_listed(job.topic, id)
      if listed == nil then
        suspects[#suspects + 1], suspects[#suspects + 2] = job.topic, id
      elseif not listed then
        found('unplaced', job.topic, id, function() find_again(id, job) end)
      end
    end
  end

  local function check_jobs_of(topic, ids, jobs, dues, is_listed)
    check_listed(topic)
    local reserved, buried = call('ZMSCORE', reserved_key(topic), unpack(ids)), call('ZMSCORE', buried_key(topic), unpack(ids))
    local delayed = delay_has(topic, ids, dues)
    for i, id in ipairs(ids) do
      local job = jobs[i]
      check_place(id, job, { reserved = reserved[i], delayed = delayed[i], buried = buried[i] }, is_listed)
      if job.expire > 0 then check_expiry(id, job) end
      if job.options ~= '' then check_tags(id, job) end
      if is_for_set(job) then check_priority(id, call('HGET', PRIORITIES, id)) end
    end
  end

  function check_jobs(all, records, is_listed)
    local ids, jobs, dues = {}, {}, {}  -- by topic
    for i, id in ipairs(all) do
      spend(#records[i] / UNIT_BYTES)
      local job = unpack_record(records[i])
      if job then
        local topic = job.topic
        if not ids[topic] then ids[topic], jobs[topic], dues[topic] = {}, {}, {} end
        local n = #ids[topic] + 1
        ids[topic][n], jobs[topic][n], dues[topic][n] = id, job, job.due
      elseif not call('ZSCORE', BROKEN, id) then
        found('record', 'job', id, function() call('ZADD', BROKEN, int(now), id) end)
      end
    end
    for topic in pairs(ids) do try(check_jobs_of, topic, ids[topic], jobs[topic], dues[topic], is_listed) end
  end
end

-- runs

local check_run
do
  local function has_whole_notes(run)
    local at = 1
    while at <= #run.notes do
      local length, message_at = string.match(run.notes, '^%d+ %d+ %d+ (%d+) ()', at)
      if not length then return false end
      at = message_at + length
    end
    return at == #run.notes + 1
  end

  -- The run that a job with this record should have, packed; nil for none.
  local function sound_run(id, job, packed_run)
    local run = unpack_run(packed_run)
    local is_held = call('ZSCORE', reserved_key(job.topic), id)
    local is_readable, results = pcall(results_of, run)
    if not is_readable or type(results) ~= 'table' then run.results = '' end
    if not has_whole_notes(run) then run.notes = '' end
    if is_held then
      run.attempt = math.max(1, run.attempt)
      if run.receipt == '-' then run.receipt = 'lost' end  -- matches no client's: the job is delivered again after its TTR
    else
      run.receipt = '-'
    end
    return (run.attempt > 0 or run.notes .. run.results ~= '') and pack_run(run) or nil
  end

  function check_run(id, packed_run)
    local job, has_record = job_of(id)
    if has_record and not job then return end  -- it stays with its record, to be looked at
    local sound = job and sound_run(id, job, packed_run)
    if sound == packed_run or not sound and not packed_run then return end
    found('run', job and job.topic or 'run', id, function()
      if sound then call('HSET', RUNS, id, sound) else call('HDEL', RUNS, id) end
    end)
  end
end

-- jobs that ended

local function drop_kept(id, job)
  call('HDEL', ENDED, id)
  if job then call('ZREM', done_key(job.topic), id) end
end

local function check_ended(id, ended)
  spend(#ended / UNIT_BYTES)
  local job = job_of_ended(ended)
  if not job or exists(JOBS, id) then
    found('kept', job and job.topic or 'ended', id, function() drop_kept(id, job) end)
    return
  end
  check_listed(job.topic)
  if job.options ~= '' then check_tags(id, job) end
  if call('ZSCORE', done_key(job.topic), id) then return end
  found('kept', job.topic, id, function()
    local drop_at = tonumber(string.match(ended, '^%a+ (%d+)')) + job.retain
    call('ZADD', done_key(job.topic), int(drop_at), id)
    wake_at(job.topic, drop_at)
  end)
end

-- entries of the indexes

-- An entry whose record is unreadable is dropped; the record is kept to be looked at.
local function check_entry(key, topic, id, is_place)
  local job, has_record = job_of(id)
  if job and job.topic == topic then return job end
  found_entry(key, id, function()
    if has_record and not job then call('ZADD', BROKEN, int(now), id) end
    call('ZREM', key, id)
  end, is_place and not has_record and topic)
  return nil
end

local function check_due(key, topic, id, due, record)
  local job = record and unpack_record(record)
  if not job or job.topic ~= topic then
    found_entry(key, id, function()
      if record and not job then call('ZADD', BROKEN, int(now), id) end
      delay_remove(topic, id, due)
    end, not record and topic)
  elseif job.due ~= due then
    found('due', topic, id, function()
      delay_remove(topic, id, due)
      if state_of(id, job) == 'ready' then delay_job(id, job, job.due) end
    end)
  end
end

local function check_delayed(key, topic, ids, dues)
  local records = call('HMGET', JOBS, unpack(ids))
  for i, id in ipairs(ids) do
    if records[i] then spend(#records[i] / UNIT_BYTES) end
    check_due(key, topic, id, dues[i], records[i])
  end
end

local function check_reserved(key, topic, id)
  local job = check_entry(key, topic, id, true)
  if not job then return end
  check_run(id, call('HGET', RUNS, id) or nil)
  if not job.group then return end
  local hand, member = groups.hand_key(topic), groups.hand_of(id, job.group)
  if not call('ZSCORE', hand, member) then found('group', topic, job.group, function() call('ZADD', hand, '0', member) end) end
end

local function check_broken(key, _, id)
  local job, has_record = job_of(id)
  if job or not has_record then found_entry(key, id, function() call('ZREM', key, id) end) end
end

local function check_expire(key, topic, id, time)
  local job = check_entry(key, topic, id)
  if not job or job.expire == tonumber(time) then return end
  found('expiry', topic, id, function()
    call('ZREM', key, id)
    enter_expiry(id, job)
  end)
end

local function check_done(key, topic, id)
  local ended = ended_of(id)
  local job = ended and job_of_ended(ended)
  if not job or job.topic ~= topic then found_entry(key, id, function() call('ZREM', key, id) end) end
end

local function check_tagged(key, name, id)
  local ended = ended_of(id)
  local job = job_of(id) or ended and job_of_ended(ended)
  for _, tagged in ipairs(job and job.tags or {}) do
    if tagged == name then return end
  end
  found_entry(key, id, function() call('SREM', key, id) end)
end

local function check_schedule_time(key, _, name)
  if not exists(named_key('schedules'), name) then found_entry(key, name, function() call('ZREM', key, name) end) end
end

-- topics

local function check_timer(key, _, topic)
  if exists(TOPICS, topic) or first_time(topic) then return end
  found_entry(key, topic, function() call('ZREM', key, topic) end)
end

local function check_topic(topic)
  local settings = settings_of(topic)
  if not next(settings) and call('HGET', TOPICS, topic) ~= '' then
    found('settings', topic, '', function() call('HSET', TOPICS, topic, '') end)
  end
  local repair = delay_mismatch(topic)
  if repair then found('wheel', topic, '', repair) end
  local first = first_time(topic)
  local pause_end = tonumber(settings.paused_until) or 0
  if pause_end > 0 and (not first or pause_end < first) then first = pause_end end
  local timer = tonumber(call('ZSCORE', TIMERS, topic))
  if first and not (timer and timer <= first) then
    found('timer', topic, '', function() wake_at(topic, first) end)
  end
end
