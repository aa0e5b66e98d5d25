-- Notes that somebody waits for the end of jobs, so that the scripts which end or bury them announce it (tell_end in _job.lua).
-- requires  _view, _reads
-- flags  allow-oom
-- waits  never
-- ARGV  ids
-- returns for each id 0 if its job has not ended, else what get.lua does: it has ended, is buried, or does not exist. It ends as get.lua does
-- keeps: what is noted is forgotten by itself, unless it is noted again: the client may be gone. An older version of the
--        server announces no end, and announcements can get lost: so each server looks again now and then.
local KEPT_MS = 15000  -- three times as long as until a server looks again (end_waits.py)
local DROPPED = 200  -- at most in a call

local function has_not_ended(id)
  local job = read_job(id)
  return job and not call('ZSCORE', buried_key(job.topic), id)
end

local function drop_old()
  local old = call('ZRANGEBYSCORE', AWAITED, '-inf', int(now), 'LIMIT', 0, DROPPED)
  if #old > 0 then call('ZREM', AWAITED, unpack(old)) end
end

local function note_all(marks)
  drop_old()
  if #marks == 0 then return end
  call('ZADD', AWAITED, unpack(marks))
  call('PEXPIRE', AWAITED, KEPT_MS)
end

return function(ARGV)
  local answers, marks, _, read = {}, {}, viewer()
  local function look(id) return has_not_ended(id) and 0 or read(id) end

  for i, id in ipairs(ARGV) do
    if has_done_enough() or not may_read(all_bytes_of(id)) then break end
    local known, answer = pcall(look, id)
    answers[i] = known and answer or 0  -- a broken key: it is looked at again
    if answers[i] == 0 then marks[#marks + 1], marks[#marks + 2] = int(now + KEPT_MS), id end
  end
  pcall(note_all, marks)
  return answers
end
