-- How many jobs the limits of a topic allow: settings_of(topic).limit, which limit.lua writes.
-- A rate is kept as one time: when the whole burst is available again. Each delivery moves it on by 1/rate; the part of the
-- burst that is missing until then has been delivered. So nothing has to be refilled, and an idle topic costs nothing.
-- requires  _job

local function set_whole_at(topic, time) call('HSET', RATES, topic, string.format('%.3f', time)) end

local function whole_at(topic, share)
  local time = tonumber(call('HGET', RATES, topic) or now)
  local latest = now + share.burst * 1000 / share.rate
  if time > latest + 0.001 then  -- the clock was put back
    set_whole_at(topic, latest)
    return latest
  end
  return math.max(now, time)
end

-- Counts jobs that were handed out; a negative number: put back.
local function count_through(topic, limit, count)
  local share = limit.share
  if not share.rate or count == 0 then return end
  set_whole_at(topic, whole_at(topic, share) + count * 1000 / share.rate)
end

local let_through, next_through
do  -- limits the scope of the rest
  -- How many jobs the rate allows now. RATES is rounded to 0.001 ms, which must not hold one back.
  local function left_of_burst(topic, share)
    return math.floor(share.burst - (whole_at(topic, share) - now - 0.001) * share.rate / 1000)
  end

  -- How many jobs may be handed out now, of `wanted`.
  function let_through(topic, limit, wanted)
    local share = limit.share
    if share.concurrency then wanted = math.min(wanted, share.concurrency - call('ZCARD', reserved_key(topic))) end
    if share.rate then wanted = math.min(wanted, left_of_burst(topic, share)) end
    return math.max(0, wanted)
  end

  -- When the rate allows the next ready jobs; `now` or earlier = it does; nil = it holds none back.
  function next_through(topic, limit)
    local TOGETHER_MS = 10  -- polls are woken together for jobs that the rate allows within this time
    local share = limit.share
    if not share.rate then return nil end
    if not has_ready(topic) then return nil end
    if left_of_burst(topic, share) >= 1 then return now end
    local together = math.max(1, math.floor(math.min(share.burst, share.rate * TOGETHER_MS / 1000)))
    return math.ceil(whole_at(topic, share) + (together - share.burst) * 1000 / share.rate)
  end
end
