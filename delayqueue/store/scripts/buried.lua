-- Reads why jobs of topics were buried, the latest of each topic first. Changes nothing.
-- requires  _job, _marks
-- flags  no-writes
-- ARGV  mark of the last entry of the first topic that was read ("" at first), entries looked at, at most, topics
-- returns { mark of the last entry that was read of the topic behind those that are done ("" = none), { number of the topic
--           (from 1), id, ms when it was buried, run, ... } }
-- keeps: a job that stays buried is read, whatever becomes of others.

return function(ARGV)
  local mark, limit = ARGV[1], tonumber(ARGV[2])
  local found = {}

  -- How many entries of the topic are left to read.
  local function left_of(topic)
    local key = buried_key(topic)
    if mark == '' then return call('ZCARD', key) end
    local rank, score, id = marks.rank(key, mark), string.match(mark, '^(%d+) (.+)$')
    return call('ZSCORE', key, id) == score and rank - 1 or rank
  end

  for number = 1, #ARGV - 2 do
    local topic = ARGV[number + 2]
    local left = left_of(topic)
    local entries = left > 0 and call('ZRANGE', buried_key(topic), math.max(0, left - limit), left - 1, 'WITHSCORES') or {}
    for at = #entries - 1, 1, -2 do
      local id, buried_ms = entries[at], entries[at + 1]
      if has_done_enough() then return { mark, found }, nil, number - 1 end
      local run = call('HGET', RUNS, id) or ''
      count_work(#run / 768)
      found[#found + 1], found[#found + 2], found[#found + 3], found[#found + 4] = number, id, buried_ms, run
      mark = marks.of(id, buried_ms)
    end
    limit = limit - #entries / 2
    if limit <= 0 then return { mark, found }, nil, number - 1 end
    mark = ''
  end
  return { '', found }, nil, #ARGV - 2
end
