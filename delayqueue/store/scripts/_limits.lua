-- What the limits of a topic let through: settings_of(topic).limit, which limit.lua writes.
-- A rate is kept as one time: when the whole burst is there again. Each delivery moves that on by 1/rate; what is missing of
-- the burst until then has been delivered. So nothing has to be refilled, and a topic at rest costs nothing.
-- requires  _life
local TOGETHER_MS = 10  -- jobs that the rate lets go within so many ms are woken for together

local function set_whole_at(topic, time) call('HSET', RATES, topic, string.format('%.3f', time)) end

local function whole_at(topic, share, now)
  local time = tonumber(call('HGET', RATES, topic) or now)
  local latest = now + share.burst * 1000 / share.rate
  if time > latest + 0.001 then  -- the clock was put back
    set_whole_at(topic, latest)
    return latest
  end
  return math.max(now, time)
end

-- How many the rate lets go now. RATES is rounded to 0.001 ms, which must not keep one back.
local function left_of_burst(topic, share, now)
  return math.floor(share.burst - (whole_at(topic, share, now) - now - 0.001) * share.rate / 1000)
end

-- How many jobs may be handed out now, of `wanted`.
local function let_through(topic, limit, wanted, now)
  local share = limit.share
  if share.concurrency then wanted = math.min(wanted, share.concurrency - call('ZCARD', reserved_key(topic))) end
  if share.rate then wanted = math.min(wanted, left_of_burst(topic, share, now)) end
  return math.max(0, wanted)
end

-- So many were handed out; a negative number: were given back.
local function count_through(topic, limit, count, now)
  local share = limit.share
  if not share.rate or count == 0 then return end
  set_whole_at(topic, whole_at(topic, share, now) + count * 1000 / share.rate)
end

-- When the rate lets the next ready jobs go; `now` or earlier = it does; nil = it holds none back.
local function next_through(topic, limit, now)
  local share = limit.share
  if not share.rate or count_ready(topic) == 0 then return nil end
  if left_of_burst(topic, share, now) >= 1 then return now end
  local together = math.max(1, math.floor(math.min(share.burst, share.rate * TOGETHER_MS / 1000)))
  return math.ceil(whole_at(topic, share, now) + (together - share.burst) * 1000 / share.rate)
end
