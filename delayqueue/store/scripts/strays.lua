-- A page of the ids that stand in this bucket, for one who looks for those that belong to another.
-- KEYS  tag, queue name
-- ARGV  "job" or "ended", cursor ("0" at first)
-- returns { next cursor ("0" = that was all), { id, ... }, how many there are in all }
-- keeps: an id that stands in the bucket all the while is seen by who goes from the first cursor to the last.
local key, cursor = ARGV[1] == 'job' and JOBS or ENDED, ARGV[2]
local PAGE = 16  -- entries that one command reads, bodies and all; more where Redis stores the hash compactly
local MOST_IDS, MOST_BYTES = 500, 1024 * 1024
local ids, bytes = {}, 0

repeat
  local page = call('HSCAN', key, cursor, 'COUNT', PAGE)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][i]
    bytes = bytes + #page[2][i + 1]
  end
until cursor == '0' or #ids >= MOST_IDS or bytes >= MOST_BYTES
return { cursor, ids, call('HLEN', key) }
