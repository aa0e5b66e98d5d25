-- Sets or reads a topic's limits: how fast and how many at once its jobs are handed out, how long buried ones are kept, where
-- they are reported, and how many jobs it may have.
-- requires  _shares
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, this bucket's number (from 0), number of buckets, "1" if a config file says it, else "0",
--       then name, value, ...: rate (a second), burst, concurrency, group_concurrency, group_order ("1"), buried_retain_ms, buried_to
--       (a topic), max_jobs, when_full (drop_oldest); value "" = remove it.
--       What is not named stays, unless a config file says it; a burst that nobody named is that of a tenth of a second, whatever the rate.
-- returns { 0, WRONG_STATE if a config file says otherwise, INVALID for a burst without a rate, FULL for when_full without
--           max_jobs, or EXISTS if buried_to leads back to the topic; the limits in force (JSON) }
-- keeps: `share` is the part of the whole that this bucket allows; a group is in one bucket. Groups that were held before `changed` are
--        looked at again (pop.lua).

return function(ARGV)
  local topic, number, buckets, declared = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
  local named = {}
  for at = 5, #ARGV, 2 do named[ARGV[at]] = ARGV[at + 1] end

  -- The limits after these changes; nil and a code for a burst without a rate, or when_full without max_jobs.
  local function merged(limit)
    limit = declared and {} or limit
    local is_named = limit.burst == limit.named_burst  -- an older version of the server notes only the burst
    local is_usual = not is_named and (not limit.burst or limit.burst == math.ceil(limit.rate / 10))
    for _, name in ipairs({ 'rate', 'burst', 'concurrency', 'group_concurrency', 'buried_retain_ms', 'max_jobs' }) do
      if named[name] then limit[name] = tonumber(named[name]) end
    end
    if named.burst then limit.named_burst = limit.burst end
    if named.group_order then limit.group_order = named.group_order == '1' or nil end
    for _, name in ipairs({ 'buried_to', 'when_full' }) do
      if named[name] then limit[name] = named[name] ~= '' and named[name] or nil end
    end
    if not limit.max_jobs then
      if named.when_full and named.when_full ~= '' then return nil, FULL end
      limit.when_full = nil
    end
    if not limit.rate then
      if tonumber(named.burst) then return nil, INVALID end
      limit.burst, limit.named_burst = nil, nil
    elseif not limit.burst or is_usual and not named.burst then
      limit.burst = math.ceil(limit.rate / 10)
    end
    return limit
  end

  local settings = settings_of(topic)
  local limit = settings.limit or {}
  local code = OK
  if next(named) and limit.declared and not declared then
    code = WRONG_STATE
  elseif not declared and leads_back(topic, named.buried_to) then  -- the order of what a file says does not matter
    code = EXISTS
  elseif next(named) then
    local wanted, why = merged(limit)
    if wanted then
      wanted.declared = declared or nil
      set_limit(topic, settings, wanted, number, buckets)
    else
      code = why
    end
  end
  return { code, settings.limit and cjson.encode(settings.limit) or '{}' }
end
