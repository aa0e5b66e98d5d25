-- Counts how many delayed jobs of topics fall due within some times from now. Changes nothing.
-- requires  _index_ranges
-- flags  no-writes
-- ARGV  number of times, each in ms from the shortest to the longest, topics
-- returns for each topic { jobs due within each time }; only for the first ones if all would be too much work
-- keeps: only ranges are counted, so the work does not grow with the number of jobs.
local SETS_PER_CALL = 2000  -- read; a topic on the wheel can take 3,600 of them

return function(ARGV)
  local times, answer, sets = tonumber(ARGV[1]), {}, 0
  for at = times + 2, #ARGV do
    if sets >= SETS_PER_CALL then break end
    local counts, total, from = {}, 0, 0
    for i = 1, times do
      local to = now + tonumber(ARGV[i + 1]) + 1
      local count, looked = delay_count_between(ARGV[at], from, to)
      total, sets, from = total + count, sets + looked, to
      counts[i] = total
    end
    answer[#answer + 1] = counts
  end
  return answer
end
