-- How many jobs of a group may be handed out: a topic's limits group_concurrency and group_order (settings_of(topic).limit).
-- requires  _job

do  -- limits the scope of the rest
  local STALE_LOOKS = 20  -- entries of a group at its limit that are looked at

  -- Drops entries of jobs that are no longer in hand: an older version of the server has ended them. Returns how many. keeps_all: does
  -- not drop them, here and below.
  local function drop_stale(topic, from, to, keeps_all)
    local members, ids = call('ZRANGEBYLEX', groups.hand_key(topic), from, to, 'LIMIT', '0', int(STALE_LOOKS)), {}
    if #members == 0 then return 0 end
    for i, member in ipairs(members) do ids[i] = select(2, groups.of_hand(member)) end
    local dropped = 0
    for i, deadline in ipairs(call('ZMSCORE', reserved_key(topic), unpack(ids))) do
      if not deadline then
        dropped = dropped + 1
        if not keeps_all then call('ZREM', groups.hand_key(topic), members[i]) end
      end
    end
    return dropped
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

  -- Whether no job of the group in the other lane comes before those of this one: workers and the server's calls keep one order.
  local function comes_first(lane, topic, group)
    local other = groups.ranks(groups.other_lane(lane), topic, group, 1)[1]
    local mine = other and groups.ranks(lane, topic, group, 1)[1]
    return not mine or mine <= other
  end

  -- How many jobs of the group may be handed out now, of `wanted`; and the only one that may, with its id, if one comes first
  -- because it failed.
  function groups.room(lane, topic, group, limit, wanted, keeps_all)
    local most = limit and (limit.group_order and 1 or limit.group_concurrency)
    if not most then return wanted end
    local from, to = groups.bounds(group)
    local room = most - call('ZLEXCOUNT', groups.hand_key(topic), from, to)
    if room <= 0 then room = room + drop_stale(topic, from, to, keeps_all) end
    if room <= 0 or not limit.group_order then return math.max(0, math.min(wanted, room)) end
    local id, job, state = first_of(topic, group, keeps_all)
    if not id then return comes_first(lane, topic, group) and 1 or 0 end
    if state ~= 'ready' or groups.lane_of(job) ~= lane then return 0 end
    return 1, job, id
  end
end
