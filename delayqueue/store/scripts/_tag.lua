-- The jobs of a tag.
-- requires  _job, _scan_tag

-- Changes the jobs of a tag, those of one topic or of all (""), by `change(id, job)`, which returns a code. Looks at about `limit`
-- ids, from `place` on: that of scan_tag() ("0" at first), and ids that it returned last and that were not
-- processed. Returns { the same for the next call, "0" alone if all is done }, and how many were changed.
local function each_tagged(name, topic, limit, place, change)
  local SCANNED = 50  -- ids that are read together, about: those that the call does not come to are sent back and forth
  if topic ~= '' then
    local is_told, has = pcall(has_jobs, topic)  -- a broken key: its other jobs are changed
    if is_told and not has then return { '0' }, 0 end
  end
  local cursor, ids, count, looked = place[1], { unpack(place, 2) }, 0, 0
  limit = tonumber(limit)
  repeat
    if #ids == 0 then
      cursor, ids = scan_tag(name, cursor, math.min(limit, SCANNED))
      count_work(#ids)  -- they are anywhere in memory
    end
    for i, id in ipairs(ids) do
      if has_done_enough() then return { cursor, unpack(ids, i) }, count end
      local job = call('SISMEMBER', tag_key(name), id) == 1 and read_job(id)
      if job and (topic == '' or job.topic == topic) then
        local done, code = pcall(change, id, job)  -- a broken key: it stays
        if done and code == OK then count = count + 1 end
      end
    end
    looked, ids = looked + #ids, {}
  until cursor == '0' or looked >= limit or has_done_enough()
  return { cursor }, count
end
