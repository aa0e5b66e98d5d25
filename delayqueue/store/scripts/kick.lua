-- Makes buried or delayed jobs due and ready now.
-- requires  _index_ranges, _kick
-- flags  allow-oom
-- waits  changes
-- ARGV  topic, state (buried | delayed), count, then for each job: id, its body ("=" and the new one, or "" to keep it).
--       With a topic: its first `count` jobs in that state. With topic "": the given jobs.
-- returns a code per id, for the first ones; with a topic, the answer says how many ids there were

return function(ARGV)
  local topic, wanted, count = ARGV[1], ARGV[2], tonumber(ARGV[3])

  local function first_ids()
    if wanted == 'delayed' then return delay_first(topic, count) end
    return call('ZRANGE', buried_key(topic), 0, count - 1)
  end

  local states = topic == '' and { buried = true, delayed = true } or { [wanted] = true }
  local function kick_one(id, body) return kick(id, read_job(id), states, (body or '') ~= '' and string.sub(body, 2) or nil) end

  if topic == '' then return (for_each(kick_one, ARGV, 2, 4)) end
  local ids = first_ids()
  return for_each(kick_one, ids, 1), nil, #ids
end
