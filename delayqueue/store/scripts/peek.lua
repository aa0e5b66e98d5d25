-- Finds the next job of a topic in a state: the next to be handed out, to become due, or to be kicked. Changes
-- no job; as pop does, it removes the ghosts before the first ready one.
-- requires  _first, _index_ranges
-- flags  allow-oom
-- waits  never
-- ARGV  topic, state
-- returns { its id }, or {} if there is none; the answer says 1 if it has to be asked again, since it had done enough, else 0
local NEVER = 10 ^ 15

return function(ARGV)
  local topic, state = ARGV[1], ARGV[2]

  local function first_of_ranked(last)
    local rank = call('ZRANGEBYSCORE', ranked_key(topic), '-inf', last, 'LIMIT', 0, 1)[1]
    return rank and id_of_rank(rank)
  end

  local function first_of_groups(kind)
    local rank = groups.rank_at(kind, '', topic)
    return rank and groups.id_of_rank(rank)
  end

  local function first_ready()
    local is_grouped = call('EXISTS', groups.key('grouped', '', topic)) == 1
    return is_grouped and first_of_groups('turns') or first_of_ranked(USUAL_PRIORITY) or first_in_list(topic, math.huge) or first_of_ranked('+inf')
      or is_grouped and (first_of_groups('next') or first_of_groups('held')) or nil
  end

  local function first()
    if state == 'ready' then return first_ready() end
    if state == 'delayed' then return delay_page(topic, 0, NEVER, 0, 1)[1] end
    return call('ZRANGE', buried_key(topic), 0, 0)[1]
  end

  local id = first()
  return { id }, nil, not id and has_done_enough() and 1 or 0
end
