-- How many jobs of a group may be handed out: a topic's limits group_concurrency and group_order (settings_of(topic).limit).
-- requires  _job

do  -- limits the scope of the rest
  local STALE_LOOKS = 20  -- entries of a group at its limit that are looked at

  -- Drops entries of jobs that are no longer in hand: an older version of the server has ended them. Returns how many, and the id of the
  -- job whose reservation ends first, of those looked at. keeps_all: does not drop them, here and below.
  local function drop_stale(topic, from, to, keeps_all)
    local members, ids = call('ZRANGEBYLEX', groups.hand_key(topic), from, to, 'LIMIT', '0', int(STALE_LOOKS)), {}
    if #members == 0 then return 0 end
    for i, member in ipairs(members) do ids[i] = select(2, groups.of_hand(member)) end
    local dropped, first, first_end = 0, nil, nil
    for i, deadline in ipairs(call('ZMSCORE', reserved_key(topic), unpack(ids))) do
      local ends = tonumber(deadline)  -- nil: not reserved
      if not ends then
        dropped = dropped + 1
        if not keeps_all then call('ZREM', groups.hand_key(topic), members[i]) end
      elseif not first or ends < first_end then
        first, first_end = ids[i], ends
      end
    end
    return dropped, first
  end

  -- The job that comes before the others of its group because it failed, and its state; nil if there is none.
  local function first_of(topic, group, keeps_all)
    local id = call('HGET', groups.first_key(topic), group)
    if not id then return nil end
    local job = read_job(id)
    local state = job and job.topic == topic and job.group == group and state_of(id, job)
    if state and state ~= 'buried' then return id, job, state end
    if not keeps_all then call('HDEL', groups.first_key(topic), group) end
    return nil
  end

  -- The id of the group's job in the other lane that comes before those of this one: workers and the server's calls keep one order. nil if
  -- there is none.
  local function before(lane, topic, group)
    local other = groups.ranks(groups.other_lane(lane), topic, group, 1)[1]
    local mine = other and groups.ranks(lane, topic, group, 1)[1]
    return mine and mine > other and groups.id_of_rank(other) or nil
  end

  -- How many jobs of the group may be handed out now, of `wanted`. If one comes first: that job, the only one that may, and its id. If none
  -- may: nil and the id of a job that they wait for, nil = none of those looked at.
  function groups.room(lane, topic, group, limit, wanted, keeps_all)
    local most = limit and (limit.group_order and 1 or limit.group_concurrency)
    if not most then return wanted end
    local from, to = groups.bounds(group)
    local room = most - call('ZLEXCOUNT', groups.hand_key(topic), from, to)
    if room <= 0 then
      local dropped, in_hand = drop_stale(topic, from, to, keeps_all)
      room = room + dropped
      if room <= 0 then return 0, nil, in_hand end
    end
    if not limit.group_order then return math.min(wanted, room) end
    local id, job, state = first_of(topic, group, keeps_all)
    if not id then
      id = before(lane, topic, group)
      return id and 0 or 1, nil, id
    end
    if state ~= 'ready' or groups.lane_of(job) ~= lane then return 0, nil, id end
    return 1, job, id
  end

  -- What holds up a ready job, because its group may have no more in hand: the id of another job, its state, and until when, in ms
  -- (the end of its reservation, or its retry; '' = it is ready, in the other lane). {}: nothing does, or it is not known.
  local function look(job, limit_of)
    local topic = job.topic
    local room, _, id = groups.room(groups.lane_of(job), topic, job.group, limit_of(topic), 1, true)
    if room > 0 or not id then return {} end
    local deadline = call('ZSCORE', reserved_key(topic), id)
    if deadline then return { id, 'reserved', int(deadline) } end
    local other = read_job(id)
    local state = state_of(id, other)
    return { id, state, state == 'delayed' and int(other.due) or '' }
  end

  -- Returns a function that tells what holds up a ready job, as above. It looks once at each group, and at the limit of each topic, and
  -- writes nothing. A broken key holds nothing up.
  function groups.observer()
    local limits, verdicts = {}, {}

    local function limit_of(topic)
      if limits[topic] == nil then limits[topic] = settings_of(topic).limit or false end
      return limits[topic]
    end

    return function(job)
      if not job.group then return {} end
      local key, group = set_of(job), job.group
      verdicts[key] = verdicts[key] or {}
      if not verdicts[key][group] then
        local is_known, verdict = pcall(look, job, limit_of)
        verdicts[key][group] = is_known and verdict or {}
      end
      return verdicts[key][group]
    end
  end
end
