-- Adds what a server has counted since its last call to the current steps, and what it noticed to the marks.
-- requires  _history
-- waits  never
-- ARGV  topics that a step names at most, number of rings, for each its length in ms and its places; number of marks, for each
--       its kind, ms since it began, ms that it lasted, server ("" = all); then rows: field (a, o or tTOPIC) and
--       its figures (_history.lua)
-- returns { 1 if the caller should count the jobs in the store and add that: once in each step of the first ring; else 0 }
-- keeps: a step names the topics that came first; the figures of others are under o. Counts are added; of numbers of jobs the
--        largest is kept. A key of ours that does not hold a step is removed.
local MOST_MARKS = 200
local SAME_MS = 10000  -- servers notice the same incident within this time
local KEPT_MS = 31 * 86400000

local function open_step(key, number, lifetime)
  if is_step(key, number) then return end
  call('DEL', key)
  call('HSET', key, 's', int(number), 'n', 0)
  call('PEXPIRE', key, int(lifetime))
end

local function is_known(known, kind, began)
  for _, mark in ipairs(known) do
    local at, its_kind = string.match(mark, '^(%d+) (%a+) ')
    if its_kind == kind and math.abs(at - began) <= SAME_MS then return true end
  end
  return false
end

return function(ARGV)
  local most_topics, rings = tonumber(ARGV[1]), tonumber(ARGV[2])
  local MARKS = tag .. ':history:marks'
  local marks_at = 3 + 2 * rings
  local rows_at = marks_at + 1 + 4 * ARGV[marks_at]

  local fields, rows = { 'n', 'o' }, {}  -- the fields to read of a step, and the figures to add to all but the first two
  for at = rows_at, #ARGV, 2 do
    fields[#fields + 1], rows[#rows + 1] = ARGV[at], unpack_figures(ARGV[at + 1])
  end

  local function add_rows(key)
    local before = call('HMGET', key, unpack(fields))
    local named, changed = tonumber(before[1]) or 0, {}
    local others
    for i, figures in ipairs(rows) do
      local field, packed = fields[i + 2], before[i + 2]
      local is_new = not packed and string.sub(field, 1, 1) == 't'
      if field == 'o' or is_new and named >= most_topics then
        others = others or unpack_figures()
        add_figures(others, figures, false)
      else
        if is_new then named = named + 1 end
        local sum = unpack_figures(packed)
        add_figures(sum, figures, true)
        changed[#changed + 1], changed[#changed + 2] = field, pack_figures(sum)
      end
    end
    if others then
      add_figures(others, unpack_figures(before[2]), true)
      changed[#changed + 1], changed[#changed + 2] = 'o', pack_figures(others)
    end
    call('HSET', key, 'n', named, unpack(changed))
  end

  local function add_marks()
    if call('TYPE', MARKS).ok ~= 'list' then call('DEL', MARKS) end
    for at = marks_at + 1, rows_at - 1, 4 do
      local kind, ago, lasted, server = unpack(ARGV, at, at + 3)
      local began = now - ago
      if server ~= '' or not is_known(call('LRANGE', MARKS, 0, 19), kind, began) then
        call('LPUSH', MARKS, int(began) .. ' ' .. kind .. ' ' .. lasted .. ' ' .. server)
      end
    end
    call('LTRIM', MARKS, 0, MOST_MARKS - 1)
    call('PEXPIRE', MARKS, KEPT_MS)
  end

  local looks = 0
  for ring = 1, rings do
    local step, places = tonumber(ARGV[1 + 2 * ring]), tonumber(ARGV[2 + 2 * ring])
    local number = math.floor(now / step)
    local key = history_key(int(step), int(number % places))
    open_step(key, number, step * places)
    if rows_at <= #ARGV then add_rows(key) end
    if ring == 1 then looks = call('HSETNX', key, 'l', 1) end
  end
  if rows_at > marks_at + 1 then add_marks() end
  return { looks }
end
