-- Reserves ready jobs: takes ids off the ready lists, checks them, counts the attempt, sets the deadline.
-- requires  _limits, _turns, _reads
-- flags  allow-oom
-- waits  all
-- needs  replicas
-- ARGV  receipt (unique to this call), then for each request: count, 1 = the most urgent jobs of all topics or 0 = the
--       first topics' jobs, number of topics, topics in the order to search; "" instead of one = jobs with a call, of all topics
-- returns for each request { id, record, attempt, ... }, and at last the revision of the subscribers, "" if another bucket holds
--         them; the answer says how many of the requests, from the first on, were done before the call reached its limits. The
--         event of a first attempt has ms from due to now, or from its push if that was later
-- keeps: an id is trusted only if its record exists, belongs to this topic, and is in none of the sets. A client that is told of
--        a job has its reservation: it is written first.
local CHUNK = 32          -- records that are read together
local LIMIT_LOOKS = 2000  -- in a call: about 5 ms
local LOOKS_A_JOB = 7     -- a topic takes one
local OPTIONS_LOOKS = 3   -- a job with options takes more
local HAND_LOOKS = 3      -- and so does one of a group
local CALLED_LOOKED = 64  -- topics with called jobs that one request looks at
local GROUP_LOOKS = 14    -- a group takes, beside its jobs
local LET_GO = 50         -- groups that stand in line again together
local ROUND_MS = 1000     -- groups that come within this time after a round's first turn have one in it
local HELD_MS = 1000      -- a topic that is paused or at its limit is looked at again after this, unless that ends before

-- The priority of the ready job of a topic that is next, or of one of several; nil if there is none.
local function first_priority(topic)
  local function of_groups(kind)
    local rank = groups.rank_at(kind, '', topic)
    return rank and groups.priority_of_rank(rank)
  end

  local function of_others()
    local first = tonumber(call('ZRANGE', ranked_key(topic), 0, 0, 'WITHSCORES')[2])
    if first and first <= USUAL_PRIORITY or call('EXISTS', queue_key(topic)) == 0 then return first end
    return USUAL_PRIORITY
  end

  if call('EXISTS', groups.key('grouped', '', topic)) == 0 then return of_others() end
  return of_groups('turns') or of_others() or of_groups('next') or of_groups('held')
end

-- The state of this call of the script.
local receipt
local looks             -- at ids and topics
local is_full           -- it has reached its limits
local knows_priorities

-- Reads the records of the ids and reserves those that are truly ready. They are from the sorted set `key`, nil = from the list; of: the
-- group of each, nil = they are of none. Returns the ghosts met, how many of them have no record, and what became of the others: id ->
-- 'reserved' or 'expired'.
local function reserve(topic, ids, found, key, of)
  local records, runs = call('HMGET', JOBS, unpack(ids)), call('HMGET', RUNS, unpack(ids))
  local reserved = call('ZMSCORE', reserved_key(topic), unpack(ids))
  local buried = call('ZMSCORE', buried_key(topic), unpack(ids))
  local jobs, dues = {}, {}
  for i, record in ipairs(records) do
    jobs[i] = record and unpack_record(record) or false
    dues[i] = jobs[i] and jobs[i].due or 0
  end
  local delayed = delay_has(topic, ids, dues)
  local ghosts, missing, deadlines, new_runs, taken, first = 0, 0, {}, {}, {}, nil
  local told, delays, hands = {}, {}, {}
  for i, id in ipairs(ids) do
    local job = jobs[i]
    local set = job and set_of(job)
    if records[i] and not job then
      call('ZADD', BROKEN, int(now), id)
    elseif not job or job.topic ~= topic or reserved[i] or delayed[i] or buried[i] or taken[id]
      or (set ~= key and (is_ranked(id, job) or key and not (job.call or job.group))) or of and job.group ~= of[i] then
      ghosts = ghosts + 1
      if not records[i] then missing = missing + 1 end
    elseif (job.call or job.group) and set ~= key then  -- an older version of the server has made it ready
      make_ready(id, job)
    elseif job.expire > 0 and job.expire <= now then
      -- the timer has not processed it yet; if a key of the wrong type prevents its end, it is left to the timer
      if pcall(finish_job, id, job, 'expired', '') then
        ghosts = ghosts + 1
        tell('expired', topic, 1)
      end
      taken[id] = 'expired'
    else
      if job.options ~= '' then looks = looks + OPTIONS_LOOKS end
      local run = unpack_run(runs[i])
      run.attempt, run.receipt, run.started = run.attempt + 1, receipt, now
      local deadline = now + job.ttr
      taken[id], first = 'reserved', math.min(first or deadline, deadline)
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = int(deadline), id
      new_runs[#new_runs + 1], new_runs[#new_runs + 2] = id, pack_run(run)
      if job.group then
        looks = looks + HAND_LOOKS
        hands[#hands + 1], hands[#hands + 2] = '0', groups.hand_of(id, job.group)
      end
      told[#told + 1], told[#told + 2], told[#told + 3] = id, records[i], run.attempt
      if run.attempt == 1 then delays[#delays + 1] = math.max(0, now - math.max(job.due, job.created)) end
    end
  end
  if #hands > 0 then call('ZADD', groups.hand_key(topic), unpack(hands)) end
  if first then
    call('ZADD', reserved_key(topic), unpack(deadlines))
    call('HSET', RUNS, unpack(new_runs))
    wake_at(topic, first)
  end
  for _, part in ipairs(told) do found[#found + 1] = part end
  if first then tell('delivered', topic, #deadlines / 2) end
  for _, delay in ipairs(delays) do tell('delivered', topic, 0, delay) end
  return ghosts, missing, taken
end

-- The first of these ids: those whose records may still be read in this call.
local function allowed(ids)
  local some = {}
  for i, id in ipairs(ids) do
    is_full = not may_read(call('HSTRLEN', JOBS, id))
    if is_full then break end
    some[i] = id
  end
  looks = looks + LOOKS_A_JOB * #some
  is_full = is_full or looks >= LIMIT_LOOKS
  return some
end

-- The functions below add ready jobs to `found`, which has id, record and attempt of each, until it holds `count` of them.

local function fill_from_list(topic, count, found)
  local queue = queue_key(topic)
  while #found / 3 < count and not is_full do
    local wanted = math.min(CHUNK, count - #found / 3)
    local listed = call('LRANGE', queue, '0', int(wanted - 1))
    local ids = allowed(listed)
    if #ids == 0 then return end
    local ghosts, missing = reserve(topic, ids, found, nil)
    call('LTRIM', queue, int(#ids), '-1')
    count_removed(topic, #ids)
    if ghosts > 0 then count_ghosts(topic, -ghosts, missing) end
    if #ids == #listed and #listed < wanted then return end
  end
end

-- From a sorted set, for the priorities from the first to the last.
local function fill_from_set(key, topic, first, last, count, found)
  while #found / 3 < count and not is_full do
    local wanted = math.min(CHUNK, count - #found / 3)
    local ranks = call('ZRANGEBYSCORE', key, first, last, 'LIMIT', '0', int(wanted))
    local listed = {}
    for i, rank in ipairs(ranks) do listed[i] = id_of_rank(rank) end
    local ids = allowed(listed)
    if #ids == 0 then return end
    local _, missing = reserve(topic, ids, found, key)
    call('ZREM', key, unpack(ranks, 1, #ids))
    if missing > 0 then tell('lost', topic, missing) end  -- a job that ends leaves no ghost in such a set
    if #ids == #ranks and #ranks < wanted then return end
  end
end

-- How many jobs of a group may be taken now, of `most`, the ranks of these and of one more, if it has more, and whether that is the
-- only one that may, since it comes before the others.
local function room_of_turn(lane, topic, group, most, limit)
  local room, first, first_id = groups.room(lane, topic, group, limit, most)
  local ranks = room > 0 and groups.ranks(lane, topic, group, room + 1) or {}
  if not first then return room, ranks, false end
  if not is_ranked(first_id, first) then  -- an older version of the server has made it ready
    leave_waiting(first_id, first)
    make_ready(first_id, first)
  end
  local own = rank_of(first_id, first)
  return 1, { own, ranks[1] ~= own and ranks[1] or ranks[2] }, true
end

-- Lets groups that were held, or have had their turn, leave their places in the line. left: by where they go, time and group of each.
local function leave_line(line, lane, topic, left)
  local gone = {}
  for kind, entries in pairs(left) do
    if #entries > 0 then
      if kind == 'rested' then groups.rest(lane, topic, entries) else call('ZADD', groups.key(kind, lane, topic), unpack(entries)) end
      for i = 2, kind == line and 0 or #entries, 2 do gone[#gone + 1] = entries[i] end
    end
  end
  if #gone > 0 then call('ZREM', groups.key(line, lane, topic), unpack(gone)) end
end

-- From these groups, whose turn it is, at most `share` jobs of each, which are reserved together. line: where the groups stand.
local function fill_from_groups(line, waiting, lane, topic, share, count, found, limit)
  local key, wanted = groups.key('grouped', lane, topic), count - #found / 3
  local ids, ranks, of, turns, left = {}, {}, {}, {}, { held = {}, next = {}, rested = {} }

  local function leave(kind, group)
    local entries = left[kind]
    entries[#entries + 1], entries[#entries + 2] = int(now), group
  end

  for _, group in ipairs(waiting) do
    local most = math.min(CHUNK, share, wanted - #ids)
    if is_full or most == 0 or #ids >= CHUNK then break end
    looks = looks + GROUP_LOOKS
    is_full = looks >= LIMIT_LOOKS
    local room, its_ranks, is_first = room_of_turn(lane, topic, group, most, limit)
    local listed = {}
    for i = 1, math.min(room, #its_ranks) do listed[i] = groups.id_of_rank(its_ranks[i]) end
    local its_ids = allowed(listed)
    if #its_ids == 0 and #listed > 0 then break end  -- the answer has no room for its first job
    for i, id in ipairs(its_ids) do
      ids[#ids + 1], ranks[#ranks + 1], of[#of + 1] = id, its_ranks[i], group
    end
    if room == 0 then
      leave('held', group)
    else
      turns[#turns + 1] = { group = group, ids = its_ids, has_more = #its_ranks > #its_ids, is_first = is_first }
    end
  end
  local taken = {}
  if #ids > 0 then
    local _, missing, its_taken = reserve(topic, ids, found, key, of)
    taken = its_taken
    call('ZREM', key, unpack(ranks))
    if missing > 0 then tell('lost', topic, missing) end
  end
  for _, turn in ipairs(turns) do
    local has_got = false
    for _, id in ipairs(turn.ids) do has_got = has_got or taken[id] == 'reserved' end
    if not has_got then groups.leave(lane, topic, turn.group) end  -- they were ghosts
    if not turn.has_more then
      leave('rested', turn.group)
    elseif has_got then
      leave('next', turn.group)
    elseif turn.is_first then  -- a broken key prevents its end
      leave('held', turn.group)
    end  -- else it still has its turn
  end
  leave_line(line, lane, topic, left)
end

-- The only group of a topic with ready jobs, if those without a group have none; nil if there are others. line: where it stands.
local function only_group(line, lane, topic)
  local others = call('EXISTS', lane == '' and queue_key(topic) or called_key(topic), ranked_key(topic), groups.key('held', lane, topic),
    groups.key('rested', lane, topic), groups.key(line == 'turns' and 'next' or 'turns', lane, topic))
  local standing = others == 0 and call('ZRANGE', groups.key(line, lane, topic), '0', '1') or {}
  return #standing == 1 and standing[1] or nil
end

-- Lets groups stand in line that were held before the topic's limits changed. Returns whether there are more of them.
local function let_changed_go(lane, topic, limit)
  local changed = groups.are_limited(limit) and (limit.changed or 0)
  local held = call('ZRANGEBYSCORE', groups.key('held', lane, topic), '-inf', changed and int(changed) or '+inf', 'LIMIT', '0', int(LET_GO))
  for _, group in ipairs(held) do groups.enter(lane, topic, group) end
  looks = looks + #held * GROUP_LOOKS
  return #held == LET_GO and (changed or 0) <= now  -- if the clock was put back, those that are held again would be more of them
end

-- Whether a round has lasted long enough, and whether groups have come too late for it: who came long after its first turn waits for
-- the next one. Else a stream of new groups, each with a job or two, would keep those that have had a turn, and the jobs without a group,
-- waiting for ever.
local function is_over(lane, topic)
  local first = first_of(groups.key('turns', lane, topic))
  if not first then return true, false end
  local next_turn, rest = first_of(groups.key('next', lane, topic)), first_of(groups.key('rested', lane, topic))
  local are_late = first > math.min(next_turn or first, rest or first) + ROUND_MS
  return are_late, are_late
end

-- Begins another round, with those that had their turn and have more; who came too late for the last one (are_late) is next. Returns
-- whether any group has a turn.
local function begin_round(lane, topic, are_late)
  local turns, next_turns, rested = groups.key('turns', lane, topic), groups.key('next', lane, topic), groups.key('rested', lane, topic)
  call('UNLINK', rested)
  if call('EXISTS', next_turns) == 0 then return are_late end
  if are_late then call('RENAME', turns, rested) end  -- a name that is free, so that the two change places
  call('RENAME', next_turns, turns)
  if are_late then call('RENAME', rested, next_turns) end
  return true
end

-- How many of `wanted` jobs each waiting group may take in a turn; the jobs without a group may take as many.
local function share_of_turn(lane, topic, wanted)
  if wanted <= 1 then return 1 end
  local waiting = call('ZCARD', groups.key('turns', lane, topic)) + call('ZCARD', groups.key('next', lane, topic))
  return math.max(1, math.floor(wanted / (waiting + 1)))
end

-- Takes jobs in rounds: each waiting group has a turn, and at the end of a round the jobs without a group have one.
local function fill_in_rounds(lane, topic, count, found, limit, fill_others)
  local are_more_held = let_changed_go(lane, topic, limit)
  local share = share_of_turn(lane, topic, count - #found / 3)
  local has_ended, are_late = is_over(lane, topic)
  while #found / 3 < count and not is_full do
    local most = math.min(CHUNK, count - #found / 3)
    local waiting = has_ended and {} or call('ZRANGE', groups.key('turns', lane, topic), '0', int(most - 1))
    if #waiting > 0 then
      fill_from_groups('turns', waiting, lane, topic, share, count, found, limit)
    else
      local goes_on = begin_round(lane, topic, are_late)
      has_ended, are_late = false, false
      fill_others(topic, goes_on and math.min(count, #found / 3 + math.min(CHUNK, share)) or count, found)
      if not goes_on then break end
    end
  end
  is_full = is_full or are_more_held
end

-- Takes jobs of groups in turn, or, if only one group has any, all from that one. fill_others: adds jobs without a group.
local function fill_by_turns(lane, topic, count, found, limit, fill_others)
  while #found / 3 < count and not is_full do
    local keys = call('EXISTS', groups.key('grouped', lane, topic), groups.key('turns', lane, topic))
    if keys == 0 then return fill_others(topic, count, found) end
    local line = keys == 2 and 'turns' or 'next'
    local only = only_group(line, lane, topic)
    if not only then return fill_in_rounds(lane, topic, count, found, limit, fill_others) end
    fill_from_groups(line, { only }, lane, topic, count, count, found, limit)
  end
end

local function fill_without_groups(topic, count, found)
  if call('EXISTS', ranked_key(topic)) == 0 then return fill_from_list(topic, count, found) end
  fill_from_set(ranked_key(topic), topic, '-inf', USUAL_PRIORITY, count, found)
  fill_from_list(topic, count, found)
  fill_from_set(ranked_key(topic), topic, '(' .. USUAL_PRIORITY, '+inf', count, found)
end

local function fill(topic, count, found, limit)
  if not knows_priorities then return fill_from_list(topic, count, found) end
  fill_by_turns('', topic, count, found, limit, fill_without_groups)
end

local function fill_called(topic, count, found, limit)
  fill_by_turns('called_', topic, count, found, limit, function(_, most)
    fill_from_set(called_key(topic), topic, '-inf', '+inf', most, found)
  end)
end

-- Reserves jobs of a topic as far as its limits allow, by one of the two functions above.
local function pop_topic(topic, count, found, fill)
  local settings = settings_of(topic)
  if is_paused(settings) then return end
  local limit = settings.limit
  if not limit then return fill(topic, count, found) end
  local before = #found / 3
  fill(topic, before + let_through(topic, limit, count - before), found, limit)
  count_through(topic, limit, #found / 3 - before)
  local time = next_through(topic, limit)
  if time and time > now then wake_at(topic, time) end
end

-- Calls `work`. A broken key is passed over silently: it does not keep other topics from being served, and the timer counts it.
local function try(work, ...)
  looks = looks + 1
  is_full = is_full or looks >= LIMIT_LOOKS
  local is_well, result = pcall(work, ...)
  return is_well and result or nil
end

-- For how long a topic that is held is not looked at: of however many, one is looked at in a millisecond.
local function held_ms() return math.max(HELD_MS, call('ZCARD', CALLED_TOPICS)) end

-- The topics whose jobs with a call may be taken, those first that were served longest ago; and whether all were looked at.
local function called_topics()
  local entries, topics, latest = call('ZRANGE', CALLED_TOPICS, '0', int(CALLED_LOOKED - 1), 'WITHSCORES'), {}, now + held_ms()
  for i = 1, #entries, 2 do
    local since = tonumber(entries[i + 1])
    if since <= now or since > latest then topics[#topics + 1] = entries[i] end  -- the latter: the clock was put back
  end
  return topics, #topics == 0 or #entries < 2 * CALLED_LOOKED
end

-- Puts a topic where it belongs among CALLED_TOPICS after its turn.
local function pass_turn(topic, is_held)
  if call('EXISTS', called_key(topic), groups.key('turns', 'called_', topic), groups.key('next', 'called_', topic)) == 0 then return call('ZREM', CALLED_TOPICS, topic) end
  call('ZADD', CALLED_TOPICS, int(is_held and now + held_ms() or now), topic)
end

-- Takes jobs with a call: a share from each topic, then what is left.
local function pop_called(count, found)
  local topics, are_all = called_topics()

  -- Returns whether it may have more.
  local function take(topic, share)
    local wanted = math.min(count, #found / 3 + share)
    try(pop_topic, topic, wanted, found, fill_called)
    local has_more = is_full or #found / 3 >= wanted
    pass_turn(topic, not has_more)
    return has_more
  end

  local rest = {}
  for i, topic in ipairs(topics) do
    if is_full or #found / 3 >= count then return end
    if take(topic, math.ceil((count - #found / 3) / (#topics - i + 1))) then rest[#rest + 1] = topic end
  end
  for _, topic in ipairs(rest) do
    if is_full or #found / 3 >= count then return end
    take(topic, count)
  end
  is_full = is_full or not are_all
end

local function pop_in_order(topics, count, found)
  for _, topic in ipairs(topics) do
    if is_full then return end
    if topic == CALLS then
      try(pop_called, count, found)
    else
      try(pop_topic, topic, count, found, fill)
    end
  end
end

-- Takes one job at a time, from the topic whose first job is the most urgent; the first topic wins a tie.
local function pop_by_priority(topics, count, found)
  local firsts = {}
  for i, topic in ipairs(topics) do
    if is_full then return end
    firsts[i] = try(first_priority, topic)
  end
  while #found / 3 < count and not is_full do
    local best
    for i in ipairs(topics) do
      if firsts[i] and (not best or firsts[i] < firsts[best]) then best = i end
    end
    if not best then return end
    local before = #found
    try(pop_topic, topics[best], before / 3 + 1, found, fill)
    firsts[best] = #found > before and try(first_priority, topics[best]) or nil
  end
end

return function(ARGV)
  count_commands(false)
  receipt, looks, is_full, knows_priorities = ARGV[1], 0, false, has_priorities()
  local answer, at, complete = {}, 2, 0
  while at <= #ARGV do
    local count, is_by_priority, size = tonumber(ARGV[at]), ARGV[at + 1] == '1', tonumber(ARGV[at + 2])
    local topics, found = { unpack(ARGV, at + 3, at + 2 + size) }, {}
    if knows_priorities and is_by_priority then
      pop_by_priority(topics, count, found)
    else
      pop_in_order(topics, count, found)
    end
    answer[#answer + 1] = found
    if not is_full then complete = complete + 1 end
    at = at + 3 + size
  end
  local revision = redis.pcall('HGET', REVISIONS, 'subscribers')  -- jobs are reserved: a broken key must not prevent the answer
  answer[#answer + 1] = type(revision) == 'string' and revision or ''
  return answer, nil, complete
end
