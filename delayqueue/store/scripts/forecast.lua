-- Counts how many delayed jobs fall due in each step of a time range. Changes nothing.
-- KEYS  tag, queue name
-- ARGV  start ms, step ms, number of steps, topics
-- returns { count per step }; a step's start belongs to it, its end to the next
-- keeps: only ranges are counted, so the work does not grow with the number of jobs.
local start, step, steps = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local counts = {}
for i = 1, steps do
  local from = start + (i - 1) * step
  counts[i] = 0
  for at = 4, #ARGV do
    counts[i] = counts[i] + delay_count_between(ARGV[at], from, from + step)
  end
end
return counts
