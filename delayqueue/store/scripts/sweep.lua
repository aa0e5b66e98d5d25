-- Housekeeping in the timer's spare time: removes ghosts from ready lists, forgets topics that stay empty, ends buried
-- jobs that were kept long enough.
-- requires  _job
-- flags  allow-oom
-- waits  never
-- ARGV  cursor of the topics ("0" at first), topics looked at, about, ms that a buried job is kept if its topic's
--       settings do not say ("" = until somebody ends it)
-- returns { next cursor, ghosts dropped, topics forgotten, buried jobs ended, 1 if it stopped because it had done enough }
local READ_TOGETHER = 200  -- ids of buried jobs: more than a call processes
local REACH = 25000  -- ids from either end of a ready list: to walk there takes about 0.5 ms
local WINDOW = 150  -- ids read in one call, shared among the ready lists that have ghosts

local function is_empty(topic) return not has_jobs(topic) and call('EXISTS', expire_key(topic), done_key(topic)) == 0 end

return function(ARGV)
  local cursor, limit, buried_retain = ARGV[1], ARGV[2], tonumber(ARGV[3])
  local ghosts, forgotten, ended = 0, 0, 0

  -- Ends jobs that were buried long enough. One that cannot be ended does not block the others.
  local function end_buried(topic, retain)
    local key = buried_key(topic)
    for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', int(now - retain), 'LIMIT', 0, READ_TOGETHER)) do
      if has_done_enough() then return end
      local job = read_job(id)
      if job and job.topic == topic and pcall(finish_job, id, job, 'expired', '') then
        ended = ended + 1
        tell('buried_expired', topic, 1)
      else
        call('ZADD', key, int(now), id)
      end
    end
  end

  local function forget_if_empty(topic, settings)
    if settings ~= '' or not is_empty(topic) then return false end
    call('HDEL', GHOSTS, topic)
    redis.pcall('HDEL', REMOVED, topic)
    call('ZREM', TIMERS, topic)
    call('UNLINK', groups.first_key(topic), groups.hand_key(topic), groups.keys(topic, 'turns', 'next', 'held', 'rested'))
    call('HDEL', TOPICS, topic)  -- last: a topic with a timer is known (push.lua)
    forgotten = forgotten + 1
    return true
  end

  local kept, haunted = {}, {}  -- topic, for how long, ...; topic, its settings, ...

  local function look_at(topic, settings)
    local limits = settings_of(topic, settings).limit or {}
    local retain = limits.buried_retain_ms or buried_retain
    if retain and (first_of(buried_key(topic)) or now) <= now - retain then
      kept[#kept + 1], kept[#kept + 2] = topic, retain
    end
    if not forget_if_empty(topic, settings) and call('HEXISTS', GHOSTS, topic) == 1 then
      haunted[#haunted + 1], haunted[#haunted + 2] = topic, settings
    end
  end

  -- Starts from another place near one of the ends at each call, so that all of a list is seen in time; after its end comes its head.
  local function drop_some(topic, settings, window)
    if has_done_enough() then return end
    local length = call('LLEN', queue_key(topic))
    local place = now % 1000000 * 7919 % math.max(1, math.min(length, 2 * REACH))
    if place >= REACH then place = math.max(place, place + length - 2 * REACH) end
    local rest = math.max(0, math.min(place, place + window - length))
    ghosts = ghosts + drop_ghosts(topic, place, window)
    if not has_done_enough() then ghosts = ghosts + drop_ghosts(topic, 0, rest) end
    forget_if_empty(topic, settings)  -- at once: a later sweep would take it for one of the few that are left
  end

  local page = call('HSCAN', TOPICS, cursor, 'COUNT', limit)  -- a small hash comes whole, whatever the limit
  -- pcall: a topic with a broken key does not keep the others from being swept; inspect.lua repairs it
  for i = 1, #page[2], 2 do pcall(look_at, page[2][i], page[2][i + 1]) end
  done_us = 0  -- a look at the topics is bounded by their number: the last of them must not find all spent
  for i = 1, #kept, 2 do pcall(end_buried, kept[i], kept[i + 1]) end
  local window = math.max(1, math.floor(WINDOW / math.max(1, #haunted / 2)))
  for i = 1, #haunted, 2 do pcall(drop_some, haunted[i], haunted[i + 1], window) end
  local is_cut_short = has_done_enough()
  return { is_cut_short and cursor or page[1], ghosts, forgotten, ended, is_cut_short and 1 or 0 }
end
