-- Ends the jobs of a tag, whatever their topic and state; those that ended already stay as they are.
-- KEYS  tag, queue name
-- ARGV  sender, tag name, topic ("" = every), cursor ("0" at first), jobs looked at in about
-- returns { next cursor ("0" = all were looked at), jobs cancelled, { topic, jobs that may go now, ... } }
local sender, name, topic, cursor, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = now_ms()
local count = 0

allow_when_full()
local page = call('SSCAN', tag_key(name), cursor, 'COUNT', limit)
for _, id in ipairs(page[2]) do
  local job = read_job(id)
  if job and (topic == '' or job.topic == topic) then
    if pcall(finish_job, id, job, 'cancelled', '', now) then count = count + 1 end  -- a broken key: it stays
  end
end
return { page[1], count, announce_arrivals(sender) }
