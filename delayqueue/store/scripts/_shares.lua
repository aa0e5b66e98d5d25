-- How a topic's limits are divided among the buckets.
-- requires  _limits, _room

local set_limit
do  -- limits the scope of the rest
  -- The share of the whole that bucket `number` (from 0) allows.
  local function part_of(whole, number, buckets)
    local rest = whole % buckets
    return math.max(1, (whole - rest) / buckets + (number < rest and 1 or 0))
  end

  local function share_of(limit, number, buckets)
    local share = {}
    if limit.concurrency then share.concurrency = part_of(limit.concurrency, number, buckets) end
    if limit.max_jobs then share.max_jobs = part_of(limit.max_jobs, number, buckets) end
    if limit.rate then share.rate, share.burst = limit.rate / buckets, math.max(1, limit.burst / buckets) end
    return share
  end

  -- At most a whole burst can have been delivered too early, whatever the rate was before.
  local function adjust_rate(topic, share)
    if not share.rate then return call('HDEL', RATES, topic) end
    set_whole_at(topic, whole_at(topic, share))
  end

  function set_limit(topic, settings, limit, number, buckets)
    limit.share, limit.changed = share_of(limit, number, buckets), nil
    local limits_groups = groups.are_limited(limit)
    if limits_groups then limit.changed = now end
    settings.limit = (limit.rate or limit.concurrency or limits_groups or limit.buried_retain_ms or limit.buried_to or limit.max_jobs) and limit or nil
    save_settings(topic, settings)
    room.forget()
    adjust_rate(topic, limit.share)
    arrive_all(topic)
  end
end
