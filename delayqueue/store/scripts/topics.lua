-- Counts the jobs of topics. Changes nothing.
-- requires  _job
-- flags  no-writes
-- ARGV  topics
-- returns for each topic { delayed, ready, reserved, buried, ms since the oldest ready job was due and there, or -1,
--                          paused until ms (0 = until resumed, -1 = not paused), limit (JSON, "" = none),
--                          ready ones before the usual priority, ready ones with a call, groups with ready ones that stand in line, and that
--                          are held, -1 = no job is of a group }, or delayed for one that has nothing else;
--         only for the first ones if all would be too much work
local GHOSTS_SKIPPED = 100  -- at the head of a ready list, to find its oldest job

local function age_of(id, topic)
  local job = read_job(id)
  if job and job.topic == topic and state_of(id, job) == 'ready' then
    return math.max(0, now - math.max(job.due, job.created))  -- nobody can have handed it out before it was pushed
  end
  return nil
end

local function oldest_in_list(topic)
  for _, id in ipairs(call('LRANGE', queue_key(topic), 0, GHOSTS_SKIPPED)) do
    if has_done_enough() then break end
    local age = age_of(id, topic)
    if age then return age end
  end
  return -1
end

-- The oldest of the least urgent jobs in a sorted set, which wait for all others, and of the most urgent ones.
local function oldest_in_set(key, topic)
  local oldest = -1
  for _, place in ipairs({ 0, -1 }) do
    local priority = call('ZRANGE', key, place, place, 'WITHSCORES')[2]
    local first = priority and call('ZRANGEBYSCORE', key, priority, priority, 'LIMIT', 0, 1)[1]
    if first then oldest = math.max(oldest, age_of(id_of_rank(first), topic) or -1) end
  end
  return oldest
end

-- The oldest of the groups that wait longest, of those that stand in line and of those that are held.
local function oldest_in_groups(topic)
  local oldest = -1
  for _, lane in ipairs(groups.LANES) do
    for _, kind in ipairs({ 'turns', 'next', 'held' }) do
      local rank = groups.rank_at(kind, lane, topic)
      if rank then oldest = math.max(oldest, age_of(groups.id_of_rank(rank), topic) or -1) end
    end
  end
  return oldest
end

-- How many members these sets have together.
local function count_in(...)
  local count = 0
  for _, key in ipairs({ ... }) do count = count + call('ZCARD', key) end
  return count
end

-- Jobs whose priority comes before the usual one.
local function count_urgent(topic) return call('ZCOUNT', ranked_key(topic), '-inf', '(' .. USUAL_PRIORITY) end

-- How many ids the list has without its ghosts; an empty one has none.
local function count_listed(topic)
  local listed = call('LLEN', queue_key(topic))
  return listed > 0 and listed - (call('HGET', GHOSTS, topic) or 0) or 0
end

-- Whether any of the topics has that key.
local function any(topics, key_of)
  local keys = {}
  for i, topic in ipairs(topics) do keys[i] = key_of(topic) end
  return call('EXISTS', unpack(keys)) > 0
end

local function has_groups(topics)
  for _, lane in ipairs(groups.LANES) do
    if any(topics, function(topic) return groups.key('grouped', lane, topic) end) then return true end
  end
  return any(topics, groups.hand_key)
end

return function(ARGV)
  local knows_priorities = has_priorities()

  local function oldest_age(topic, is_grouped)
    local oldest = oldest_in_list(topic)
    if not knows_priorities then return oldest end
    if is_grouped then oldest = math.max(oldest, oldest_in_groups(topic)) end
    return math.max(oldest, oldest_in_set(ranked_key(topic), topic), oldest_in_set(called_key(topic), topic))
  end

  local function count(topic, written, has)
    if not has.other and (not written or written == '') then return delay_count(topic) end
    local settings = settings_of(topic, written)
    local called = has.called and call('ZCARD', called_key(topic)) or 0
    local grouped, called_grouped = groups.keys(topic, 'grouped')
    local is_grouped = has.grouped and call('EXISTS', grouped, called_grouped, groups.hand_key(topic)) > 0
    local ready = (has.listed and count_listed(topic) or 0) + (has.ranked and call('ZCARD', ranked_key(topic)) or 0)
    if is_grouped then
      called = called + call('ZCARD', called_grouped)
      ready = ready + call('ZCARD', grouped)
    end
    ready = ready + called
    return {
      delay_count(topic), ready, has.reserved and call('ZCARD', reserved_key(topic)) or 0, has.buried and call('ZCARD', buried_key(topic)) or 0,
      ready > 0 and oldest_age(topic, is_grouped) or -1, is_paused(settings) and settings.paused_until or -1,
      settings.limit and cjson.encode(settings.limit) or '', has.ranked and count_urgent(topic) or 0, called,
      is_grouped and count_in(groups.keys(topic, 'turns', 'next')) or -1, is_grouped and count_in(groups.keys(topic, 'held')) or -1,
    }
  end

  -- With 10,000 topics each command counts, and most topics have delayed jobs only: so one command asks for many of them.
  local answer, TOGETHER = {}, 20
  for first = 1, #ARGV, TOGETHER do
    local topics = { unpack(ARGV, first, math.min(first + TOGETHER - 1, #ARGV)) }
    local settings = call('HMGET', TOPICS, unpack(topics))
    local has = {
      listed = any(topics, queue_key), ranked = knows_priorities and any(topics, ranked_key),
      called = knows_priorities and any(topics, called_key), grouped = knows_priorities and has_groups(topics), reserved = any(topics, reserved_key), buried = any(topics, buried_key),
    }
    has.other = has.listed or has.ranked or has.called or has.grouped or has.reserved or has.buried
    for i, topic in ipairs(topics) do
      if has_done_enough() then return answer end
      answer[#answer + 1] = count(topic, settings[i], has)
    end
  end
  return answer
end
