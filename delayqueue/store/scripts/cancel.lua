-- Ends the jobs of a tag, whatever their topic and state; those that ended already stay as they are.
-- KEYS  tag, queue name
-- ARGV  sender, tag name, topic ("" = every), cursor ("0" at first), jobs looked at in about
-- returns { next cursor ("0" = all were looked at), jobs cancelled, { topic, jobs that may go now, ... } }
local sender, name, topic, cursor, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = now_ms()
local count = 0

allow_when_full()
local after, ids = tagged(name, topic, cursor, limit)
for _, id in ipairs(ids) do
  if pcall(finish_job, id, read_job(id), 'cancelled', '', now) then count = count + 1 end  -- a broken key: it stays
end
return { after, count, announce_arrivals(sender) }
