-- A walk over the ids of a tag, some at a time.
-- requires  _prelude

-- The server's process: a cursor of SSCAN is meaningless to another one.
local function process() return string.match(call('INFO', 'server'), 'run_id:(%x+)') end

-- The next ids, about `limit` of them, and where to go on then.
-- place: "0" at first and at the end, else "CURSOR@PROCESS", SSCAN's own cursor and who gave it
-- keeps: an id that stays among those of the tag is returned by a walk from "0" to "0" at least once: all that SSCAN returns is
--        returned, and after a failover the walk begins again.
local function scan_tag(name, place, limit)
  local cursor, author = string.match(place, '^(%d+)@(%x+)$')
  if not cursor or author ~= process() then cursor = '0' end
  local answer = call('SSCAN', tag_key(name), cursor, 'COUNT', limit)
  return answer[1] == '0' and '0' or answer[1] .. '@' .. process(), answer[2]
end
