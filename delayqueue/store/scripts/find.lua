-- Searches jobs for a text in their id or their body. Changes nothing.
-- requires  _job, _process
-- flags  no-writes
-- layout  follows
-- ARGV  "job" or "ended", cursor ("0" at first), part of the id, part of the body, topic ("" = any of these three)
-- returns { next cursor ("0" = that was all), { id, topic, state, due ms, ... } }
-- keeps: a job that stays in the hash is seen by a search from the first cursor to the last; after a failover the search of this
--        hash begins again.
local LOOK_US, BYTES_PER_US = 2, 256  -- what an entry takes, and its bytes, which Lua searches
local LONGEST_PAGE, PAGE_BYTES = 64, 128 * 1024  -- what one command reads, bodies included

local function has(text, part) return part == '' or string.find(text, part, 1, true) ~= nil end

return function(ARGV)
  local key, cursor, id_part, body_part, topic = ARGV[1] == 'job' and JOBS or ENDED, own_cursor(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
  local found, looked, bytes, page_size = {}, 0, 0, 1

  local function add(id, value)
    local job = key == JOBS and unpack_record(value) or key == ENDED and job_of_ended(value)
    if not job or is_hidden(job.topic) or topic ~= '' and job.topic ~= topic or not has(body_of(job), body_part) then return end
    local state = key == JOBS and state_of(id, job) or string.match(value, '^%a+')
    for _, part in ipairs({ id, job.topic, state, int(job.due) }) do found[#found + 1] = part end
  end

  repeat
    local page, before = call('HSCAN', key, cursor, 'COUNT', page_size), bytes
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local id, value = page[2][i], page[2][i + 1]
      looked, bytes = looked + 1, bytes + #value
      count_work(LOOK_US + #value / BYTES_PER_US)
      if has(id, id_part) and has(value, body_part) then add(id, value) end
    end
    page_size = bytes - before < PAGE_BYTES and math.min(LONGEST_PAGE, page_size * 2) or 1
  until cursor == '0' or has_done_enough()
  return { signed(cursor), found }, nil, looked
end
