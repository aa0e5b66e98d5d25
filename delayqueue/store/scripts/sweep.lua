-- Housekeeping in the timer's spare time: takes ghosts out of ready lists, forgets topics that are empty for good.
-- KEYS  tag, queue name
-- ARGV  cursor of the topics ("0" at first), topics looked at in about
-- returns { next cursor, ghosts dropped, topics forgotten }
local cursor, limit = ARGV[1], ARGV[2]
local WINDOW = 1000  -- ids looked at in one call, shared among the ready lists that have ghosts
local ghosts, forgotten = 0, 0

local function is_empty(topic)
  local keys = { queue_key(topic), reserved_key(topic), buried_key(topic), expire_key(topic), done_key(topic) }
  return delay_count(topic) == 0 and call('EXISTS', unpack(keys)) == 0
end

-- Where in a long list to look: another place at each call, so that all of it is seen in time.
local function window_start(length, window)
  if length <= window then return 0 end
  return math.floor(now_ms() * 7919 % (length - window + 1))
end

local haunted = {}

local function look_at(topic, settings)
  if settings == '' and is_empty(topic) then
    call('HDEL', TOPICS, topic)
    call('HDEL', GHOSTS, topic)
    call('ZREM', TIMERS, topic)
    forgotten = forgotten + 1
  elseif call('HEXISTS', GHOSTS, topic) == 1 then
    haunted[#haunted + 1] = topic
  end
end

local function drop_some(topic, window)
  ghosts = ghosts + drop_ghosts(topic, window_start(call('LLEN', queue_key(topic)), window), window)
end

allow_when_full()
local page = call('HSCAN', TOPICS, cursor, 'COUNT', limit)  -- a small hash comes as a whole, whatever the limit
-- pcall: a topic with a broken key does not keep the others from being swept; inspect.lua mends it
for i = 1, #page[2], 2 do pcall(look_at, page[2][i], page[2][i + 1]) end
local window = math.max(1, math.floor(WINDOW / math.max(1, #haunted)))
for _, topic in ipairs(haunted) do pcall(drop_some, topic, window) end
return { page[1], ghosts, forgotten }
