-- The history: what happened to jobs, and how many there were, by time step. Bucket 1 keeps it.
-- A ring has a fixed number of steps of one length, with a hash each; a step is replaced by the one a whole turn
-- later, so there are never more keys than places, whatever the clock does. The fields of a hash:
--   s  the number of the step     n  how many topics it names     l  that a server is counting the jobs
--   a  figures of all topics      o  of those that are not named  tTOPIC  of a topic
-- Figures, each followed by a comma, "" = 0: pushed, delivered, finished, failed, first deliveries, sum of their lateness,
-- worst of it (ms); and the most jobs seen that were delayed, ready, reserved, buried, "" = not counted.
-- requires  _call
local function history_key(step, place) return tag .. ':history:' .. step .. ':' .. place end

local FIGURES = 11
local unpack_figures, pack_figures, add_figures
do  -- limits the scope of the rest
  local COUNTS, WORST = 6, 7
  local PACKED = string.rep('(%d*),', FIGURES)

  -- Unreadable figures count as none.
  function unpack_figures(packed)
    local found = packed and { string.match(packed, PACKED) } or {}
    for i = 1, FIGURES do found[i] = tonumber(found[i]) or i <= WORST and 0 end
    return found
  end

  function pack_figures(figures)
    local parts = {}
    for i, number in ipairs(figures) do
      local is_told = number and (number > 0 or i > WORST)
      parts[i] = is_told and (number < 1e14 and number or int(number)) or ''  -- Lua itself writes 14 digits
    end
    return table.concat(parts, ',') .. ','
  end

  -- most: whether the larger number of jobs counts; else both are added, for two topics in one step.
  function add_figures(figures, more, most)
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
end

-- Whether a key holds this step: another one can have its place, or the value is not ours.
local function is_step(key, number) return redis.pcall('HGET', key, 's') == int(number) end
