-- Notes that somebody waits for the end of jobs, so that the scripts which end or bury them announce it (tell_end in _job.lua).
-- requires  _job
-- flags  allow-oom
-- waits  never
-- ARGV  ids
-- returns for each id 1 if its job has not ended, else 0: it has ended, is buried, or does not exist
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
  local answers, marks = {}, {}
  for i, id in ipairs(ARGV) do
    if has_done_enough() then break end
    local known, goes_on = pcall(has_not_ended, id)  -- a broken key: it is looked at again
    goes_on = goes_on or not known
    answers[i] = goes_on and 1 or 0
    if goes_on then marks[#marks + 1], marks[#marks + 2] = int(now + KEPT_MS), id end
  end
  pcall(note_all, marks)
  return answers
end
