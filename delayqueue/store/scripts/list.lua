-- Reads a page of the jobs of a tag, in no particular order. Changes nothing.
-- requires  _view, _reads, _scan_tag
-- flags  no-writes
-- ARGV  topic ("" = every), tag name, state ("" = every), first and last due ms (inclusive), ids looked at, at most,
--       bytes that the answer of which this is a part already holds, where to go on: a place of scan_tag() ("0" at first), and ids
--       that it returned last and that were on no page
-- returns { where to go on then, "0" alone if that was all; { { id, state, record, run, worker, ... } (_view.lua) or { id, "ended", kept record } },
--           bytes that it holds then, 1 if it has no room for the next job, else 0 }
-- keeps: a job that stays is on a page, whatever becomes of others: see scan_tag().
local MOST_LEFT = 50  -- ids that one scan is to return, about: those that find no room on a page go into its cursor

return function(ARGV)
  local topic, name, state, first, last = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
  local limit = tonumber(ARGV[6])
  local page, is_full, view = {}, false, viewer()
  read_bytes = tonumber(ARGV[7])

  local function add(id)
    local ended = nil
    local job = read_job(id)
    local found
    if job then
      found = { id, unpack(view(id, job)) }
    else
      ended = call('HGET', ENDED, id)
      job = ended and job_of_ended(ended)
      if not job then return end
      found = { id, 'ended', ended }
    end
    local its_state = ended and string.match(ended, '^%a+') or found[2]
    if topic ~= '' and job.topic ~= topic or state ~= '' and its_state ~= state then return end
    if job.due < first or job.due > last then return end
    page[#page + 1] = found
  end

  local place, ids, at, looked = ARGV[8], { unpack(ARGV, 9) }, 1, 0
  local is_over = #ids > 0 and place == '0'
  while looked < limit and not has_done_enough() do
    if at <= #ids then
      local id = ids[at]
      if call('SISMEMBER', tag_key(name), id) == 1 then
        is_full = not may_read(all_bytes_of(id))
        if is_full then break end
        add(id)
      end
      at, looked = at + 1, looked + 1
    elseif is_over then
      break
    else
      place, ids = scan_tag(name, place, math.min(limit - looked, MOST_LEFT))
      at, is_over = 1, place == '0'
      if #ids == 0 then looked = looked + 1 end
    end
  end
  return { { place, unpack(ids, at) }, page, read_bytes, is_full and 1 or 0 }
end
