-- Makes the jobs of a tag that are in one state due and ready now.
-- KEYS  tag, queue name
-- ARGV  sender, state (buried | delayed), tag name, topic ("" = every), cursor ("0" at first), jobs looked at in about
-- returns { { code per job }, { topic, jobs made ready, ... }, next cursor ("0" = all were looked at) }
local sender, state, name, topic, cursor, limit = unpack(ARGV)
local now = now_ms()
local codes = {}

allow_when_full()
local after, ids = tagged(name, topic, cursor, limit)
for i, id in ipairs(ids) do codes[i] = safely(kick, id, now, { [state] = true }) end
return { codes, announce_arrivals(sender), after }
