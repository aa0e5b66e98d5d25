-- The ready jobs of groups, and whose turn it is. Groups take turns: in a round each group that waits has one, and so have the jobs
-- without a group (pop.lua). Jobs with a call, which no worker gets, stand in a lane of their own, with keys of the same kinds:
--   grouped  the jobs, so sorted that those of a group stand together, in their order
--   turns    groups that wait for their turn in this round, and since when; a group that comes new joins them
--   next     groups that had their turn in this round, and have more
--   held     groups that may have no more jobs in hand (_turns.lua); what ends that lets them stand in line again
--   rested   groups that had their turn in this round, and had no more then: what comes meanwhile waits for the next round
--            The scores of these four are times: since when a group is there.
-- Of both lanes: `hand` has the jobs of groups that are in hand, `first` the job of a group that failed and comes before its others.
-- Where the order is strict, a group is held in one lane while its next job is in the other (_turns.lua).
-- keeps: a group with ready jobs is in one of `turns`, `next` and `held`, and no other group is.
-- requires  _call

local groups = {
  LANES = { '', 'called_' },  -- '': of workers' jobs
  pushed = {}, pushed_since = 0,  -- by topic and group: ms of the last push; of the last look at them (push.lua, keep_order)
}

do  -- limits the scope of the rest
  local RANK = 10 + 14 + 14 + 4  -- characters of a rank before the id

  -- A member is the length of its group, the group, \0 and what is different among the members of a group.
  local known, known_head  -- the last one: many jobs of a call are often of one group

  local function head_of(group)
    if group ~= known then known, known_head = group, string.format('%03d', #group) .. group end
    return known_head
  end

  -- Of the members of a group, for commands by LEX.
  function groups.bounds(group)
    local head = head_of(group)
    return '[' .. head .. '\0', '(' .. head .. '\1'
  end

  function groups.key(kind, lane, topic) return tag .. ':' .. lane .. kind .. ':' .. topic end
  function groups.hand_key(topic) return tag .. ':hand:' .. topic end
  function groups.first_key(topic) return tag .. ':first:' .. topic end
  function groups.lane_of(job) return job.call and 'called_' or '' end
  function groups.other_lane(lane) return lane == '' and 'called_' or '' end

  -- Whether these limits of a topic (nil = it has none) limit its groups.
  function groups.are_limited(limit) return limit and (limit.group_order or limit.group_concurrency) end

  local known_place, known_tag, known_topic, known_lane  -- the last one

  -- The sorted set that a job of a group is in while it is ready.
  function groups.place_of(job)
    local topic, lane = job.topic, groups.lane_of(job)
    if topic ~= known_topic or lane ~= known_lane or tag ~= known_tag then
      known_place, known_tag, known_topic, known_lane = groups.key('grouped', lane, topic), tag, topic, lane
    end
    return known_place
  end

  -- The keys of a topic of these kinds in both lanes.
  function groups.keys(topic, ...)
    local keys = {}
    for _, lane in ipairs(groups.LANES) do
      for _, kind in ipairs({ ... }) do keys[#keys + 1] = groups.key(kind, lane, topic) end
    end
    return unpack(keys)
  end

  local rank_head, rank_group, rank_priority, rank_due, rank_created, rank_length  -- what the last one began with, and of what

  -- The member for a ready job: the smallest priority comes first, then the first that was due, then the first that was pushed,
  -- then the shorter id.
  function groups.rank_of(id, job, priority)
    local group, due, created, length = job.group, job.due, job.created, #id
    if group ~= rank_group or priority ~= rank_priority or due ~= rank_due or created ~= rank_created or length ~= rank_length then
      rank_group, rank_priority, rank_due, rank_created, rank_length = group, priority, due, created, length
      rank_head = head_of(group) .. '\0' .. string.format('%010.0f%014.0f%014.0f%04d', priority, due, created, length)
    end
    return rank_head .. id
  end

  -- The score of a ready job in its sorted set: equal for those of groups, so that their ranks sort them.
  function groups.score_of(job) return job.group and '0' or int(job.priority or USUAL_PRIORITY) end

  function groups.hand_of(id, group) return head_of(group) .. '\0' .. id end

  -- The group of a member, and what comes behind it.
  local function split(member)
    local length = tonumber(string.sub(member, 1, 3)) or 0  -- nil: not one of ours
    return string.sub(member, 4, 3 + length), string.sub(member, 5 + length)
  end

  function groups.of_rank(rank)
    local group, rest = split(rank)
    return group, string.sub(rest, RANK + 1)
  end

  function groups.id_of_rank(rank) return string.sub(rank, RANK + 5 + (tonumber(string.sub(rank, 1, 3)) or 0)) end

  function groups.priority_of_rank(rank) return tonumber(string.sub(select(2, split(rank)), 1, 10)) end

  -- What the ranks of the jobs of this group and priority begin with.
  function groups.urgency_of_rank(rank) return string.sub(rank, 1, 14 + (tonumber(string.sub(rank, 1, 3)) or 0)) end

  groups.of_hand = split

  -- Raises if a key that the group of a job needs has the wrong type.
  function groups.check(job)
    local topic, lane = job.topic, groups.lane_of(job)
    local turns = groups.key('turns', lane, topic)
    if sound[turns] then return end
    for _, kind in ipairs({ 'grouped', 'turns', 'next', 'held', 'rested' }) do call('ZCARD', groups.key(kind, lane, topic)) end
    call('ZCARD', groups.hand_key(topic))
    call('HLEN', groups.first_key(topic))
    sound[turns] = true
  end

  -- The first ready jobs of a group.
  function groups.ranks(lane, topic, group, count)
    local from, to = groups.bounds(group)
    return call('ZRANGEBYLEX', groups.key('grouped', lane, topic), from, to, 'LIMIT', '0', int(count))
  end

  -- Whether the group has ready jobs.
  function groups.has(lane, topic, group) return #groups.ranks(lane, topic, group, 1) > 0 end

  -- How many ready jobs a group has, in both lanes.
  function groups.count(topic, group)
    local from, to = groups.bounds(group)
    local grouped, called = groups.keys(topic, 'grouped')
    return call('ZLEXCOUNT', grouped, from, to) + call('ZLEXCOUNT', called, from, to)
  end

  -- Groups of a topic that have ready jobs: each that has one in `probes` of those of a lane, as the largest of so few groups has, and some
  -- of the others. The jobs of a group stand together, so the work grows neither with their number nor with that of the groups.
  function groups.probe(topic, probes)
    local found, seen = {}, {}
    for _, key in ipairs({ groups.keys(topic, 'grouped') }) do
      local size, place = call('ZCARD', key), 0
      while place < size do
        local group = groups.of_rank(call('ZRANGE', key, int(place), int(place))[1])
        if not seen[group] then seen[group], found[#found + 1] = true, group end
        local _, to = groups.bounds(group)
        place = math.max(place + 1, math.floor(place + size / probes), call('ZLEXCOUNT', key, '-', to))
      end
    end
    return found
  end

  -- The rank of the first ready job of the group that is the first in `turns`, `next` or `held`; nil if there is none.
  function groups.rank_at(kind, lane, topic)
    local group = call('ZRANGE', groups.key(kind, lane, topic), '0', '0')[1]
    return group and groups.ranks(lane, topic, group, 1)[1]
  end

  -- Whether the group stands in line.
  function groups.waits(lane, topic, group)
    return call('ZSCORE', groups.key('turns', lane, topic), group) or call('ZSCORE', groups.key('next', lane, topic), group)
  end

  -- A group that has ready jobs stands in line, also if it was held: pop looks whether it still is.
  function groups.enter(lane, topic, group)
    if groups.waits(lane, topic, group) then return end
    local rested = groups.key('rested', lane, topic)
    local had_turn = call('ZSCORE', rested, group)
    call('ZADD', groups.key(had_turn and 'next' or 'turns', lane, topic), int(now), group)
    call('ZREM', groups.key('held', lane, topic), group)
    if had_turn then call('ZREM', rested, group) end
  end

  -- Adds the group of a job to those that are to stand in line, if it has one and that is not among them. Returns whether it added it.
  function groups.add(entering, job)
    if not job.group then return false end
    local place = groups.place_of(job)
    local known = entering[place] or {}
    if known[job.group] then return false end
    entering[place], known[job.group], entering[#entering + 1] = known, true, job
    return true
  end

  -- Lets the groups that were added stand in line.
  function groups.enter_all(entering)
    for _, job in ipairs(entering) do groups.enter(groups.lane_of(job), job.topic, job.group) end
  end

  -- After a ready job has left its group. In a strict order the group's jobs in the other lane may have waited for it (_turns.lua).
  function groups.leave(lane, topic, group)
    local other = groups.other_lane(lane)
    if call('ZSCORE', groups.key('held', other, topic), group) then groups.let_go(other, topic, group, 1) end
    if groups.has(lane, topic, group) then return end
    call('ZREM', groups.key('turns', lane, topic), group)
    call('ZREM', groups.key('held', lane, topic), group)
    local had_turn = call('ZREM', groups.key('next', lane, topic), group) == 1
    if had_turn or call('EXISTS', groups.key('grouped', lane, topic)) == 0 then groups.rest(lane, topic, { int(now), group }) end
  end

  -- Groups that had their turn have no more; if no group has, all turns are forgotten. entries: time and group of each.
  function groups.rest(lane, topic, entries)
    local rested = groups.key('rested', lane, topic)
    if call('EXISTS', groups.key('grouped', lane, topic)) == 1 then call('ZADD', rested, unpack(entries)) else call('UNLINK', rested) end
  end
end
