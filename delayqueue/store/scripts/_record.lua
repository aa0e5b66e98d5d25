-- The record of a job (record.py, the twin): a header of numbers, then topic, options and body untouched, by length.
--   "0" due created ttr topic_length                                   22 bytes, if the three below are 0
--   "1" due created ttr topic_length expire retain options_length      41 bytes
-- Times in ms; expire = absolute, 0 for never; retain = 0 for none. Each number has its fixed width in digits of base 90,
-- '!' (33) to 'z': memory per job counts more than being readable.
-- requires  _call
local read_options, with_option, pack_record, unpack_record, body_of
do  -- limits their scope: Lua allows 200 local variables in a script
  local TIME, SHORT_TIME, LENGTH = 7, 5, 2
  local TIME_ZERO, SHORT_TIME_ZERO, LENGTH_ZERO = 17734604157303, 2189457303, 3003  -- "!!!!!!!", "!!!!!", "!!" as digits
  local PLAIN, FULL = 48, 49  -- "0", "1"
  local BYTES_PER_US = 768  -- of a job that is read

  -- Neither this nor number_at has a loop: they run for each job that is processed.
  local function pack_number(number, width)
    local g = number % 90
    number = (number - g) / 90
    local f = number % 90
    number = (number - f) / 90
    local e = number % 90
    number = (number - e) / 90
    local d = number % 90
    number = (number - d) / 90
    local c = number % 90
    number = (number - c) / 90
    local b = number % 90
    local a = (number - b) / 90
    local digits = string.char(a + 33, b + 33, c + 33, d + 33, e + 33, f + 33, g + 33)
    return width == TIME and digits or string.sub(digits, -width)
  end

  local function number_at(text, at, width)
    local a, b, c, d, e, f, g = string.byte(text, at, at + width - 1)
    if width == LENGTH then return a * 90 + b - LENGTH_ZERO end
    if width == SHORT_TIME then return (((a * 90 + b) * 90 + c) * 90 + d) * 90 + e - SHORT_TIME_ZERO end
    return (((((a * 90 + b) * 90 + c) * 90 + d) * 90 + e) * 90 + f) * 90 + g - TIME_ZERO
  end

  -- pack_number for one field, which often has the same value as in the record before.
  local function remembering(width)
    local known, packed
    return function(number)
      if number ~= known then known, packed = number, pack_number(number, width) end
      return packed
    end
  end

  local pack_created, pack_ttr, pack_length = remembering(TIME), remembering(SHORT_TIME), remembering(LENGTH)
  local pack_expire, pack_retain, pack_options_length = remembering(TIME), remembering(TIME), remembering(SHORT_TIME)

  -- A job that was read has no copy of its body: most verbs do not touch it, and it can be a megabyte.
  function body_of(job) return job.body or string.sub(job.record, job.body_at) end

  function pack_record(job)
    local created = pack_created(job.created)
    local due = job.due == job.created and created or pack_number(job.due, TIME)
    local head = due .. created .. pack_ttr(job.ttr) .. pack_length(#job.topic)
    if job.expire == 0 and job.retain == 0 and job.options == '' then return '0' .. head .. job.topic .. body_of(job) end
    return '1' .. head .. pack_expire(job.expire) .. pack_retain(job.retain)
      .. pack_options_length(#job.options) .. job.topic .. job.options .. body_of(job)
  end

  local function is_of(kind, value) return value == nil or type(value) == kind end

  -- Whether all of a list have that type; true for an empty list.
  local function is_list_of(kind, list)
    if type(list) ~= 'table' then return list == nil end
    for _, each in ipairs(list) do
      if type(each) ~= kind then return false end
    end
    return true
  end

  -- Its length takes three digits (_groups.lua).
  local function is_group(value) return value == nil or type(value) == 'string' and value ~= '' and #value < 1000 end

  -- What a job has of its options. Most have none, and a table for all of these would be twice as large.
  local TOLD = { 'tags', 'retry', 'priority', 'key', 'group', 'call', 'report', 'since' }

  local function parse_options(text)
    count_work(4 + #text / 32)
    local readable, options = pcall(cjson.decode, text)
    if not readable or type(options) ~= 'table' then return nil end
    local is_sound = is_list_of('string', options.tags) and is_list_of('number', options.retry)
      and is_of('string', options.traceparent) and is_of('string', options.key) and is_group(options.group) and is_of('number', options.priority)
      and is_of('table', options.call) and is_of('number', options.report) and is_list_of('number', options.put_off)
      and is_of('number', options.since)
    if not is_sound then return nil end
    options.told = {}  -- names and values, since a loop over all names takes longer
    for _, name in ipairs(TOLD) do
      if options[name] ~= nil then options.told[#options.told + 1], options.told[#options.told + 2] = name, options[name] end
    end
    return options
  end

  -- Many jobs have the same options, of a group or a priority: the last short ones are remembered.
  local NO_OPTIONS, KNOWN_BYTES, MOST_KNOWN = {}, 128, 128
  local known, known_count = {}, 0

  -- The optional fields of a job (verbs.py, dump_options), nil if they are unreadable. To be read only: jobs share them.
  function read_options(text)
    if text == '' then return NO_OPTIONS end
    local options = known[text]
    if options then return options end
    options = parse_options(text)
    if options and #text <= KNOWN_BYTES then
      if known_count == MOST_KNOWN then known, known_count = {}, 0 end
      known[text], known_count = options, known_count + 1
    end
    return options
  end

  -- The options with a number, or a list of numbers, by that name (`value` is what is written, nil = without it). Nothing else edits
  -- options: a script that decoded them and wrote them again would make {} of an empty list. Only scripts write these names, and no
  -- quote in a text looks like theirs, as it has a backslash. They are no numbers of the header, although a script needs them, since
  -- versions that know two kinds of it can work on the same store; these look for a priority at the beginning only.
  function with_option(options, name, value)
    local others = string.gsub(string.sub(options, 2, -2), '^.', ',%0')  -- each begins with a comma; older versions left {} of the last one
    others = string.gsub(others, ',"' .. name .. '":%d+', '')
    others = string.gsub(others, ',"' .. name .. '":%[[%d,]*%]', '')
    local own = value and ',"' .. name .. '":' .. value or ''
    local all = name == 'priority' and own .. others or others .. own
    return all ~= '' and '{' .. string.sub(all, 2) .. '}' or ''
  end

  -- The record that begins there in a text, or that is the text. Returns nil if it is not a record. `tags`, `retry`, `priority`,
  -- `key`, `group`, `call`, `report` (_job.lua, report_burial) and `since` (push.lua) come from its options, nil if it has none. `own_due` is `due`, unless it has
  -- been put off until then (requeue.lua).
  function unpack_record(text, at)
    local before = at and at - 1 or 0
    local kind, expire, retain, options_length, topic_at = string.byte(text, before + 1), 0, 0, 0, before + 23
    local length = #text - before
    if kind ~= PLAIN and kind ~= FULL or length < 22 then return nil end
    count_work(length / BYTES_PER_US)
    if kind == FULL then
      if length < 41 then return nil end
      expire, retain, options_length = number_at(text, before + 23, TIME), number_at(text, before + 30, TIME), number_at(text, before + 37, SHORT_TIME)
      topic_at = before + 42
    end
    local options_at = topic_at + number_at(text, before + 21, LENGTH)
    local body_at = options_at + options_length
    if options_at < topic_at or body_at < options_at or body_at > #text + 1 then return nil end
    local packed_options = string.sub(text, options_at, body_at - 1)
    local options = read_options(packed_options)
    if not options then return nil end
    local due, put_off = number_at(text, before + 2, TIME), options.put_off
    local job = {
      due = due, own_due = put_off and put_off[2] == due and put_off[1] or due, created = number_at(text, before + 9, TIME), ttr = number_at(text, before + 16, SHORT_TIME),
      expire = expire, retain = retain,
      topic = string.sub(text, topic_at, options_at - 1), options = packed_options,
      record = text, body_at = body_at,
    }
    if options == NO_OPTIONS then return job end
    local told = options.told
    for i = 1, #told, 2 do job[told[i]] = told[i + 1] end
    return job
  end
end
