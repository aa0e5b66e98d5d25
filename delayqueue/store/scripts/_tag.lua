
-- The ids of a tag, those of one topic or of all (""): { next cursor ("0" = all were looked at), ids }. Looks at about
-- so many.
local function tagged(name, topic, cursor, limit)
  local page, ids = call('SSCAN', tag_key(name), cursor, 'COUNT', limit), {}
  for _, id in ipairs(page[2]) do
    local job = read_job(id)
    if job and (topic == '' or job.topic == topic) then ids[#ids + 1] = id end
  end
  return page[1], ids
end
