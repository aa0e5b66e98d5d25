-- Finds the job of a topic that is the next one of its state: to be handed out, to become due, to be kicked. Changes nothing.
-- requires  _life, _index_ranges
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  topic, state
-- returns { its id }, or {} where there is none
local topic, state = ARGV[1], ARGV[2]
local GHOSTS_SKIPPED = 100  -- at the head of a ready list
local NEVER = 10 ^ 15

local function first_in_list()
  for _, id in ipairs(call('LRANGE', queue_key(topic), 0, GHOSTS_SKIPPED)) do
    if has_done_enough() then break end
    local job = read_job(id)
    if job and job.topic == topic and state_of(id, job) == 'ready' and not is_ranked(id, job) then return id end
  end
  return nil
end

local function first_of_ranked(last)
  local rank = call('ZRANGEBYSCORE', ranked_key(topic), '-inf', last, 'LIMIT', 0, 1)[1]
  return rank and id_of_rank(rank)
end

local function first()
  if state == 'ready' then return first_of_ranked(USUAL_PRIORITY) or first_in_list() or first_of_ranked('+inf') end
  if state == 'delayed' then return delay_page(topic, 0, NEVER, 0, 1)[1] end
  return call('ZRANGE', buried_key(topic), 0, 0)[1]
end

return { first() }
