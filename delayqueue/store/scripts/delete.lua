-- Ends jobs that are not wanted any more.
-- requires  _life
-- flags  allow-oom
-- KEYS  tag, queue name
-- ARGV  sender, then for each job: id, receipt ("" = whatever its state), message
-- returns { { code per job }, { for each that ended the ms since it was handed out, -1 = it was not },
--           { topic, jobs that may go now, ... } }
-- keeps: with a receipt only the reservation that it names is ended.
local sender = ARGV[1]
local now = now_ms()
local codes, held = {}, {}

local function delete(id, receipt, message)
  local job = read_job(id)
  if not job then return receipt == '' and OK or NOT_FOUND end
  if receipt ~= '' and not holds(id, job, receipt) then return STALE_RECEIPT end
  local time = held_for(id, now)
  finish_job(id, job, 'cancelled', message, now)
  held[#held + 1] = time
  return OK
end

for at = 2, #ARGV, 3 do codes[#codes + 1] = safely(delete, ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
return { codes, held, announce_arrivals(sender) }
