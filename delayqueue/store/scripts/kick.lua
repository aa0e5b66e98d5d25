-- Makes buried or delayed jobs due and ready now.
-- requires  _index_ranges, _kick
-- flags  allow-oom
-- layout  raises
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  topic, state (buried | delayed), count, then for each job: id, its body ("=" and the new one, or "" to keep it).
--       With a topic: its first `count` jobs in that state. With topic "": the given jobs.
-- returns a code per id, for the first ones; the answer says how many ids there were

return function(ARGV)
  local topic, wanted, count = ARGV[1], ARGV[2], tonumber(ARGV[3])

  local function first_ids()
    if wanted == 'delayed' then return delay_first(topic, count) end
    return call('ZRANGE', buried_key(topic), 0, count - 1)
  end

  local ids, bodies = {}, {}
  for at = 4, #ARGV, 2 do
    ids[#ids + 1] = ARGV[at]
    if ARGV[at + 1] ~= '' then bodies[#ids] = string.sub(ARGV[at + 1], 2) end
  end
  if topic ~= '' then ids = first_ids() end
  local states = topic == '' and { buried = true, delayed = true } or { [wanted] = true }
  local codes = {}
  local function kick_one(i, id) return kick(id, read_job(id), states, bodies[i]) end
  for i, id in ipairs(ids) do codes[i] = safely(kick_one, i, id) end
  return codes, nil, #ids
end
