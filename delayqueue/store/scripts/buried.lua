-- Reads why jobs of topics were buried, the latest of each topic first. Changes nothing.
-- requires  _life
-- flags  no-writes
-- layout  follows
-- KEYS  tag, queue name
-- ARGV  place in the first topic to start from (0 at first), entries looked at, at most, topics
-- returns { topics that are done, place in the next one to start from, { number of the topic (from 1), id, ms when it
--           was buried, run, ... } }
local place, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = {}

for number = 1, #ARGV - 2 do
  local topic = ARGV[number + 2]
  local entries = call('ZREVRANGE', buried_key(topic), place, place + limit - 1, 'WITHSCORES')
  for at = 1, #entries, 2 do
    if has_done_enough() then return { number - 1, place + (at - 1) / 2, found } end
    local run = call('HGET', RUNS, entries[at]) or ''
    count_work(#run)
    found[#found + 1], found[#found + 2], found[#found + 3], found[#found + 4] = number, entries[at], entries[at + 1], run
  end
  limit = limit - #entries / 2
  if limit <= 0 then return { number - 1, place + #entries / 2, found } end
  place = 0
end
return { #ARGV - 2, 0, found }
