-- A walk over the ids of a tag, some at a time.
-- requires  _process

-- The next ids, about `limit` of them, and where to go on then.
-- place: "0" at first and at the end, else a signed cursor of SSCAN
-- keeps: an id that stays among those of the tag is returned by a walk from "0" to "0" at least once: all that SSCAN returns is
--        returned, and after a failover the walk begins again.
local function scan_tag(name, place, limit)
  local answer = call('SSCAN', tag_key(name), own_cursor(place), 'COUNT', limit)
  return signed(answer[1]), answer[2]
end
