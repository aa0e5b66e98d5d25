-- Reads a page of a key, to find what belongs to another bucket. Nobody works meanwhile (change.py).
-- requires  _process
-- flags  no-writes
-- ARGV  key without the tag, its type, cursor: "0" at first; of a list the place of the first entry
-- returns { next cursor, "0" = that was all, of a list always "0"; { member or field, score or value, ... }, without the second if it is
--         a set or a list; name of the server's process }
-- keeps: an entry that stays is seen by a scan from the first cursor to the last, in one process: a cursor is meaningless to
--        another one.
local MOST_ENTRIES, MOST_BYTES = 1000, 1024 * 1024
local LONGEST_PAGE, PAGE_BYTES = 256, 64 * 1024  -- what one command reads, bodies included
local SCAN = { hash = 'HSCAN', zset = 'ZSCAN', set = 'SSCAN' }

return function(ARGV)
  local key, kind, cursor = tag .. ':' .. ARGV[1], ARGV[2], ARGV[3]
  if call('TYPE', key).ok ~= kind then return { '0', {}, process() } end  -- what is broken stays
  if kind == 'list' then
    return { '0', call('LRANGE', key, cursor, cursor + MOST_ENTRIES - 1), process() }
  end
  local entries, bytes, page_size = {}, 0, 16
  repeat
    local page, before = call(SCAN[kind], key, cursor, 'COUNT', page_size), bytes
    cursor = page[1]
    for _, part in ipairs(page[2]) do
      entries[#entries + 1] = part
      bytes = bytes + #part
    end
    page_size = bytes - before < PAGE_BYTES and math.min(LONGEST_PAGE, page_size * 2) or 1
  until cursor == '0' or #entries >= 2 * MOST_ENTRIES or bytes >= MOST_BYTES
  return { cursor, entries, process() }
end
