-- Checks a piece of the bucket for damage, and repairs it if told to: `delay-queue fsck`, and the
-- timer in its spare time.
-- requires  _turns, _fsck_index, _fsck_ready
-- flags  allow-oom
-- waits  never
-- ARGV  "1" to repair or "0", how much to check (entries, about), then pieces, the last one first: name, cursor, ...
--       name = a key without the tag, "" = the keyspace; cursor = "0" at first. For sets also "=ID": that entry alone; for
--       `job` that job, which is not in the middle of its ready list.
-- returns { { name, cursor, ... } left to check, { kind, name, id, "1" if repaired, ... },
--           { topic, id, ... } jobs that are in no place unless they are in their ready list, which is too long to check here }
local PAGE, LONGEST_PAGE = 4, 256  -- entries that one command reads; more if Redis stores a key compactly
local KEYS_PAGE = 100

-- The entry of a set or a sorted set that a cursor "=ID" means, as a page.
local function page_of(command, key, id)
  local score = command == 'ZSCAN' and call('ZSCORE', key, id)
  local is_there = score or command == 'SSCAN' and call('SISMEMBER', key, id) == 1
  return { '0', is_there and { id, score or nil } or {} }
end

local function look_at_nothing() return '0' end
local PARCEL = { 'list', look_at_nothing }  -- of an older version that changed the number of buckets, as `sent` and `taken`
local BESIDE_JOBS = {
  subscriber_calls = { 'hash', look_at_nothing }, subscriber_failures = { 'list', look_at_nothing },
  history = { 'hash', look_at_nothing }, holders = { 'hash', look_at_nothing },
}

local function topic_of_list(key)
  if string.sub(key, 1, #queue_prefix) ~= queue_prefix or #key < #queue_prefix + #queue_suffix then return nil end
  if string.sub(key, #key - #queue_suffix + 1) ~= queue_suffix then return nil end
  return string.sub(key, #queue_prefix + 1, #key - #queue_suffix)
end

local pieces  -- left to check

local function has_enough() return left <= 0 or has_done_enough() end

local function later(name, cursor) pieces[#pieces + 1] = { name, cursor } end

-- A list is checked as a whole: a long one is the first thing that the next call does.
local function look_at_list(_, cursor, topic)
  if cursor == '0' and looked > 0 and is_long(topic) then
    left = 0
    return 'first'
  end
  check_list(topic)
  return '0'
end

local READY_LIST = { 'list', look_at_list }

-- Calls look(fields, values) for each page of a hash, a set or a sorted set, from the cursor on; returns the next one. Sets
-- that Redis stores compactly come as one page: what is too much of it is left for later.
local function scan(command, key, cursor, look)
  local width, page_size = command == 'SSCAN' and 1 or 2, PAGE
  repeat
    local id = string.match(cursor, '^=(.*)')
    local page = id and page_of(command, key, id) or call(command, key, cursor, 'COUNT', page_size)
    local fields, values, before = {}, {}, left
    for i = 1, #page[2], width do fields[#fields + 1], values[#values + 1] = page[2][i], page[2][i + width - 1] end
    spend(#fields)
    looked = looked + #fields
    for first = 1, #fields, page_size do
      local last = math.min(first + page_size - 1, #fields)
      if command == 'HSCAN' or not has_done_enough() then
        try(look, { unpack(fields, first, last) }, { unpack(values, first, last) })
      else
        for i = first, last do later(string.sub(key, #tag + 2), '=' .. fields[i]) end
      end
    end
    local is_heavy = before - left > 2 * #fields
    page_size = is_heavy and PAGE or math.max(PAGE, math.floor(math.min(LONGEST_PAGE, page_size * 2, left)))
    cursor = page[1]
  until cursor == '0' or has_enough()
  return cursor
end

-- How each key is checked, from the cursor on; returns the next cursor.

local function look_at_jobs(key, cursor)
  if string.sub(cursor, 1, 1) ~= '=' then
    return scan('HSCAN', key, cursor, function(ids, records) check_jobs(ids, records, is_in_list) end)
  end
  local id = string.sub(cursor, 2)
  local record = call('HGET', key, id)
  if record then check_jobs({ id }, { record }, is_near_an_end) end
  return '0'
end

local function look_at_delayed(due_of, mismatch)
  return function(key, cursor, topic)
    local repair = mismatch()
    if repair then found('wheel', topic, '', repair) end
    return scan('ZSCAN', key, cursor, function(ids, scores)
      local dues = {}
      for i, score in ipairs(scores) do dues[i] = due_of(tonumber(score)) end
      if #ids > 0 then check_delayed(key, topic, ids, dues) end
    end)
  end
end

-- Checks each entry: check(key, topic, id, score).
local function each(command, check)
  return function(key, cursor, topic)
    return scan(command, key, cursor, function(ids, scores)
      for i, id in ipairs(ids) do try(check, key, topic, id, scores[i]) end
    end)
  end
end

local function each_field(check)
  return each('HSCAN', function(_, _, field, value) check(field, value) end)
end

local SINGLE = {
  job = { 'hash', look_at_jobs }, run = { 'hash', each_field(check_run) }, ended = { 'hash', each_field(check_ended) },
  topics = { 'hash', each_field(check_topic) }, ghosts = { 'hash', each_field(check_ghosts) },
  broken = { 'zset', each('ZSCAN', check_broken) }, timers = { 'zset', each('ZSCAN', check_timer) },
  layout = { 'hash', look_at_nothing },
  rates = { 'hash', look_at_nothing }, servers = { 'hash', look_at_nothing }, subscribers = { 'hash', look_at_nothing },
  schedules = { 'hash', look_at_nothing }, schedule_times = { 'zset', each('ZSCAN', check_schedule_time) },
  revisions = { 'hash', look_at_nothing }, fence = { 'zset', look_at_nothing }, sent = { 'hash', look_at_nothing },
  taken = { 'hash', look_at_nothing }, priorities = { 'hash', each_field(check_priority) },
  removed = { 'hash', look_at_nothing }, awaited = { 'zset', look_at_nothing }, numbers = { 'string', look_at_nothing },
  subscribers_paused = { 'hash', look_at_nothing }, notes = { 'hash', look_at_nothing }, ['history:marks'] = { 'list', look_at_nothing },
  called_topics = { 'zset', look_at_nothing }, workers = { 'hash', look_at_nothing },
}
local look_at_ranked = each('ZSCAN', check_ranked)

local function look_at_called(key, cursor, topic)
  check_called_topic(topic)
  return look_at_ranked(key, cursor, topic)
end

local OF_TOPIC = {
  reserved = { 'zset', each('ZSCAN', check_reserved) },
  buried = { 'zset', each('ZSCAN', function(key, topic, id) check_entry(key, topic, id, true) end) },
  ranked = { 'zset', look_at_ranked }, called = { 'zset', look_at_called },
  expire = { 'zset', each('ZSCAN', check_expire) }, done = { 'zset', each('ZSCAN', check_done) },
  hand = { 'zset', each('ZSCAN', check_hand) }, first = { 'hash', look_at_nothing },
}
for _, lane in ipairs(groups.LANES) do
  local checks = checks_of_groups(lane)
  OF_TOPIC[lane .. 'grouped'], OF_TOPIC[lane .. 'held'] = { 'zset', each('ZSCAN', checks.grouped) }, { 'zset', each('ZSCAN', checks.held) }
  for _, kind in ipairs({ 'turns', 'next' }) do OF_TOPIC[lane .. kind] = { 'zset', each('ZSCAN', checks.line) } end
  OF_TOPIC[lane .. 'rested'] = { 'zset', each('ZSCAN', checks.rested) }
end
local OF_TAG = { 'set', each('SSCAN', check_tagged) }

-- What a key is: { type, how it is checked }, its topic, its tag; nil if it is not one of ours.
local function purpose_of(name, key)
  if SINGLE[name] then return SINGLE[name] end
  local queued = topic_of_list(key)
  if queued then return READY_LIST, queued end
  local kind, topic, due_of, mismatch = delay_purpose(name)
  if kind then return { kind, due_of and look_at_delayed(due_of, mismatch) or look_at_nothing }, topic end
  local family, member = string.match(name, '^([%a_]+):(.*)$')
  if family == 'tag' then return OF_TAG, nil, member end
  if family == 'parcel' then return PARCEL end
  if BESIDE_JOBS[family] then return BESIDE_JOBS[family] end
  return OF_TOPIC[family], member
end

local function look_at_key(name, cursor)
  local key = tag .. ':' .. name
  local purpose, topic, tag_name = purpose_of(name, key)
  local kind = call('TYPE', key).ok
  spend(1)
  if kind == 'none' or string.sub(name, 1, 6) == 'aside:' then return '0' end
  if not purpose then
    found('key', name, '')
    return '0'
  end
  if kind ~= purpose[1] then
    found('type', name, '', function() call('RENAME', key, tag .. ':aside:' .. int(now) .. ':' .. name) end)
    return '0'
  end
  if topic then try(check_listed, topic) end
  return try(purpose[2], key, cursor, topic or tag_name)
end

local function look_at_keyspace(cursor)
  local pattern = string.gsub(tag, '[%*%?%[%]\\]', '\\%0') .. ':*'
  local page = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', KEYS_PAGE)
  spend(KEYS_PAGE / 10)
  if page[1] ~= '0' then later('', page[1]) end
  for _, key in ipairs(page[2]) do later(string.sub(key, #tag + 2), '0') end
end

return function(ARGV)
  begin_checks(ARGV[1] == '1', tonumber(ARGV[2]))
  pieces = {}
  for at = 3, #ARGV, 2 do later(ARGV[at], ARGV[at + 1]) end
  while #pieces > 0 and not has_enough() do
    local name, cursor = unpack(table.remove(pieces))
    if name == '' then
      look_at_keyspace(cursor)
    else
      cursor = look_at_key(name, cursor)
      if cursor ~= '0' then later(name, cursor) end
    end
  end
  local rest = {}
  for _, piece in ipairs(pieces) do rest[#rest + 1], rest[#rest + 2] = piece[1], piece[2] end
  return { rest, findings, suspects }, nil, looked
end
