-- A page of the ids in this bucket, to find those that belong to another.
-- requires  _process
-- flags  no-writes
-- layout  raises
-- ARGV  "job" or "ended", cursor ("0" at first)
-- returns { next cursor ("0" = that was all), { id, ... }, how many there are in all, name of the server's process }
-- keeps: an id that stays in the bucket is seen by a scan from the first cursor to the last, in one
--        process: a cursor is meaningless to another one.
local MOST_IDS, MOST_BYTES = 100, 1024 * 1024  -- an export asks for each of them again (export.lua)
local LONGEST_PAGE, PAGE_BYTES = 64, 64 * 1024  -- what one command reads, bodies included

return function(ARGV)
  local key, cursor = ARGV[1] == 'job' and JOBS or ENDED, ARGV[2]
  local ids, bytes, page_size = {}, 0, 1

  repeat
    local page, before = call('HSCAN', key, cursor, 'COUNT', page_size), bytes
    cursor = page[1]
    for i = 1, #page[2], 2 do
      ids[#ids + 1] = page[2][i]
      bytes = bytes + #page[2][i + 1]
    end
    page_size = bytes - before < PAGE_BYTES and math.min(LONGEST_PAGE, page_size * 2) or 1
  until cursor == '0' or #ids >= MOST_IDS or bytes >= MOST_BYTES
  return { cursor, ids, call('HLEN', key), process() }
end
