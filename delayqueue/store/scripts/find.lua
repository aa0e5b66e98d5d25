-- Searches jobs for a text in their id, their body or the messages of their failures. Changes nothing.
-- requires  _turns, _process
-- flags  no-writes
-- ARGV  "job" or "ended", cursor ("0" at first), part of the id, part of the body, topic, part of a message, tag, state
--       ("" = any of these six), the first and the last due time in ms, group ("" = any)
-- returns { next cursor ("0" = that was all), { { id, topic, state, due ms, group ("" = none) } and behind these, if the job is ready and
--         held up, what does that (groups.observer) } }; of parts longer than PIECE, the jobs that may have them
-- keeps: a job that stays in the hash is seen by a search from the first cursor to the last; after a failover the search of this
--        hash begins again.
local LOOK_US, BYTES_PER_US = 2, 128  -- what an entry takes, and its bytes, if each begins what Lua searches for
local LONGEST_PAGE, PAGE_BYTES = 64, 128 * 1024  -- what one command reads, bodies included

-- Lua compares a part at each byte of a text that begins like it: of a long part only its ends are looked for, and who asked
-- compares the whole (listings.py).
local PIECE = 32

local function has(text, part)
  if #part <= PIECE then return part == '' or string.find(text, part, 1, true) ~= nil end
  local first = string.find(text, string.sub(part, -PIECE), #part - PIECE + 1, true)
  return first ~= nil and string.find(text, string.sub(part, 1, PIECE), 1, true) ~= nil
end

local function has_one(list, wanted)
  for _, each in ipairs(list or {}) do
    if each == wanted then return true end
  end
  return false
end

-- Whether one of the messages in a run has the text: not its numbers, nor the results of subscribers.
local function has_note(run, part)
  if not has(run, part) then return false end
  local notes, at = unpack_run(run).notes, 1
  while at <= #notes do
    local length, from = string.match(notes, '^%d+ %d+ %d+ (%d+) ()', at)
    if not length then return false end
    local is_name = string.sub(notes, at, at + #WORKER_NOTE - 1) == WORKER_NOTE
    at = from + length
    if not is_name and has(string.sub(notes, from, at - 1), part) then return true end
  end
  return false
end

return function(ARGV)
  local key, cursor, id_part, body_part, topic = ARGV[1] == 'job' and JOBS or ENDED, own_cursor(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
  local message_part, tag_wanted, state_wanted, first_due, last_due = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
  local group_wanted = ARGV[11]
  local found, looked, bytes, page_size, held_by = {}, 0, 0, 1, groups.observer()

  local function is_wanted(job)
    return (topic == '' or job.topic == topic) and (tag_wanted == '' or has_one(job.tags, tag_wanted))
      and (group_wanted == '' or job.group == group_wanted)
      and job.due >= first_due and job.due <= last_due and has(body_of(job), body_part)
  end

  -- What can be told without unpacking the record. A tag or a group of other characters may be written otherwise in it.
  local function plain(name) return string.match(name, '^[%w:._-]+$') or '' end
  local plain_tag, plain_group = plain(tag_wanted), plain(group_wanted)
  local function can_be_wanted(id, value)
    return has(id, id_part) and has(value, body_part) and has(value, topic) and has(value, plain_tag) and has(value, plain_group)
  end

  local function has_message(id, value)
    if message_part == '' then return true end
    if key == ENDED then
      local at, run_at, job_at = parts_of_ended(value)
      if not at then return false end
      return has(string.sub(value, at, run_at - 1), message_part) or has_note(string.sub(value, run_at, job_at - 1), message_part)
    end
    local run = call('HGET', RUNS, id) or ''
    bytes = bytes + #run
    return has_note(run, message_part)
  end

  local function add(id, value)
    if not has_message(id, value) then return end
    local job = key == JOBS and unpack_record(value) or key == ENDED and job_of_ended(value)
    if not job or is_hidden(job.topic) or not is_wanted(job) then return end
    local state = key == JOBS and state_of(id, job) or string.match(value, '^%a+')
    if state_wanted ~= '' and state ~= state_wanted then return end
    found[#found + 1] = { id, job.topic, state, int(job.own_due), job.group or '', unpack(state == 'ready' and held_by(job) or {}) }
  end

  repeat
    local page, before = call('HSCAN', key, cursor, 'COUNT', page_size), bytes
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local id, value = page[2][i], page[2][i + 1]
      looked, bytes = looked + 1, bytes + #value
      count_work(LOOK_US + #value / BYTES_PER_US)
      if can_be_wanted(id, value) then add(id, value) end
    end
    page_size = bytes - before < PAGE_BYTES and math.min(LONGEST_PAGE, page_size * 2) or 1
  until cursor == '0' or has_done_enough()
  return { signed(cursor), found }, nil, looked
end
