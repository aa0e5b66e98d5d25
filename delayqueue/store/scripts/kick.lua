-- Makes buried or delayed jobs due and ready now; their retry schedule begins anew.
-- KEYS  tag, queue name
-- ARGV  sender, topic, state (buried | delayed), count, then ids. With a topic: its first `count` jobs in that state.
--       With topic "": the ids.
-- returns { { code per id }, { topic, jobs made ready, ... } }
-- keeps: the time at which a job expires moves along with its due time, so that a dead letter can outlive its first one.
local sender, topic, wanted, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = now_ms()

local function kick(id)
  local job = read_job(id)
  if not job then return NOT_FOUND end
  local state = state_of(id, job)
  if state ~= 'buried' and state ~= 'delayed' then return WRONG_STATE end
  check_keys(job)
  leave(id, job)
  set_due(id, job, now)
  call('HSET', JOBS, id, pack_record(job))
  local run = call('HGET', RUNS, id)
  if run then
    run = unpack_run(run)
    run.step = 0
    reopen_results(run)
    call('HSET', RUNS, id, pack_run(run))
  end
  make_ready(id, job)
  return OK
end

local function first_ids()
  if wanted == 'delayed' then return delay_first(topic, count) end
  return call('ZRANGE', buried_key(topic), 0, count - 1)
end

allow_when_full()
local ids = {}
for at = 5, #ARGV do ids[#ids + 1] = ARGV[at] end
if topic ~= '' then ids = first_ids() end
local codes = {}
for i, id in ipairs(ids) do codes[i] = safely(kick, id) end
return { codes, announce_arrivals(sender) }
