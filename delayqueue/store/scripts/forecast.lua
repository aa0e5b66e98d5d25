-- Counts how many delayed jobs fall due in each step of a time range. Changes nothing.
-- requires  _index_ranges
-- flags  no-writes
-- KEYS  tag, queue name
-- ARGV  start ms, step ms, number of steps, place to go on from ("0" at first), topics
-- returns { next place, or -1 where all is counted, count per step }; a step's start belongs to it, its end to the next
-- keeps: only ranges are counted, so the work does not grow with the number of jobs.
local start, step, steps, place = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local FIRST_TOPIC = 5
local SETS_PER_CALL = 2000  -- looked at; then the call ends with the step and topic that it is at
local topics = #ARGV - FIRST_TOPIC + 1
local counts, sets = {}, 0

for i = 1, steps do counts[i] = 0 end
while place < steps * topics and sets < SETS_PER_CALL do
  local i, topic = math.floor(place / topics), ARGV[FIRST_TOPIC + place % topics]
  local from = start + i * step
  local count, looked = delay_count_between(topic, from, from + step)
  counts[i + 1] = counts[i + 1] + count
  sets = sets + looked
  place = place + 1
end
return { place < steps * topics and place or -1, counts }
