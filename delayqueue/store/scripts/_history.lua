-- The history: what came to jobs, and how many there were, by slots of time. Bucket 1 keeps it.
-- A ring has a hash for each of so many slots of a length; the place of a slot is taken by the one that comes a whole turn
-- later, so there are never more keys than places, whatever the clock does. In a hash stand:
--   s  the number of the slot     n  how many topics it names     l  that somebody looks how many jobs there are
--   a  figures of all topics      o  of those that are not named  tTOPIC  of a topic
-- Figures, each with a comma behind it, "" = 0: pushed, delivered, finished, failed, first deliveries, sum of their lateness,
-- worst of it (ms); and the most jobs seen that were delayed, ready, reserved, buried, "" = nobody has looked.
-- requires  _prelude
local COUNTS, WORST, FIGURES = 6, 7, 11
local PACKED = string.rep('(%d*),', FIGURES)

local function history_key(step, place) return tag .. ':history:' .. step .. ':' .. place end

-- What cannot be read counts as none.
local function unpack_figures(packed)
  local found = packed and { string.match(packed, PACKED) } or {}
  for i = 1, FIGURES do found[i] = tonumber(found[i]) or i <= WORST and 0 end
  return found
end

local function pack_figures(figures)
  local parts = {}
  for i, number in ipairs(figures) do
    local is_told = number and (number > 0 or i > WORST)
    parts[i] = is_told and (number < 1e14 and number or int(number)) or ''  -- Lua itself writes 14 digits
  end
  return table.concat(parts, ',') .. ','
end

-- most: whether the larger number of jobs counts; else both are added, as those of two topics in one slot.
local function add_figures(figures, more, most)
  for i = 1, FIGURES do
    local one, other = figures[i], more[i]
    if i <= COUNTS or one and other and i > WORST and not most then
      figures[i] = one + other
    elseif one and other then
      figures[i] = math.max(one, other)
    else
      figures[i] = one or other
    end
  end
end

-- Whether a key holds this slot: another can have its place, or what stands there is not ours.
local function is_slot(key, number) return redis.pcall('HGET', key, 's') == int(number) end
