-- Makes a tag's jobs in one state due and ready now.
-- requires  _tag, _kick
-- flags  allow-oom
-- layout  follows
-- waits  changes
-- KEYS  tag, queue name
-- ARGV  sender, state (buried | delayed), tag name, topic ("" = every), jobs looked at, about, where to go on (_tag.lua)
-- returns { where to go on, jobs kicked, { topic, jobs made ready, ... } }
local sender, state, name, topic, limit = unpack(ARGV)
local now = now_ms()

local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 6) }, function(id) return kick(id, now, { [state] = true }) end)
return { after, count, announce_arrivals(sender) }
