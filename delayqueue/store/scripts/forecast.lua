-- Counts how many delayed jobs fall due in each step of a time range. Changes nothing.
-- requires  _index_ranges
-- flags  no-writes
-- ARGV  start ms, step ms, number of steps, place to go on from ("0" at first), how many steps to count together (all of them
--       at first), topics
-- returns { next place, or -1 if all is counted, steps to count together, count per step }; a step's start belongs to it,
--         its end to the next
-- keeps: only ranges are counted, and the times of few jobs read, so the work does not grow with the number of jobs; nor with
--        the number of a topic's empty steps.
local FIRST_TOPIC = 6
local SETS_PER_CALL = 2000  -- read; then the call ends with the topic and step that it is at
local FEW = 4  -- jobs a step: up to this it is less work to read their times than to count each step
local JOBS_OF_SET = 2  -- that take as much work as a count

return function(ARGV)
  local start, step, steps = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  local place, together = tonumber(ARGV[4]), tonumber(ARGV[5])
  local topics = #ARGV - FIRST_TOPIC + 1
  local counts, sets = {}, 0

  for i = 1, steps do counts[i] = 0 end

  local function read_times(topic, from, to, count)
    local page = delay_page(topic, from, to, 0, count)
    for at = 2, #page, 2 do
      local i = math.floor((page[at] - start) / step) + 1
      counts[i] = counts[i] + 1
    end
  end

  while place < steps * topics and sets < SETS_PER_CALL do
    local topic, i = ARGV[FIRST_TOPIC + math.floor(place / steps)], place % steps
    together = math.min(together, steps - i)
    local from = start + i * step
    local count, looked = delay_count_between(topic, from, from + together * step)
    sets = sets + looked
    if count > FEW * together and together > 1 then
      together = math.floor(together / 2)
    else
      if count > 0 and together > 1 then
        read_times(topic, from, from + together * step - 1, count)
        sets = sets + count / JOBS_OF_SET
      else
        counts[i + 1] = counts[i + 1] + count
      end
      place = place + together
      together = place % steps == 0 and steps or count == 0 and together * 2 or 1
    end
  end
  return { place < steps * topics and place or -1, together, counts }
end
