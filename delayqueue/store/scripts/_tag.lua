-- The jobs of a tag.
-- requires  _life

-- Changes the jobs of a tag, those of one topic or of all (""), by `change(id, job)`, which returns a code. Goes on from
-- `place`: the cursor of SSCAN ("0" at first), which looks at about `limit` jobs, and ids of its last page that were not
-- processed. Returns { the same for the next call, "0" alone if all is done }, and how many were changed.
local function each_tagged(name, topic, limit, place, change)
  local cursor, ids, count = place[1], { unpack(place, 2) }, 0
  if #ids == 0 then cursor, ids = unpack(call('SSCAN', tag_key(name), cursor, 'COUNT', limit)) end
  for i, id in ipairs(ids) do
    if has_done_enough() then return { cursor, unpack(ids, i) }, count end
    local job = call('SISMEMBER', tag_key(name), id) == 1 and read_job(id)
    if job and (topic == '' or job.topic == topic) then
      local done, code = pcall(change, id, job)  -- a broken key: it stays
      if done and code == OK then count = count + 1 end
    end
  end
  return { cursor }, count
end
