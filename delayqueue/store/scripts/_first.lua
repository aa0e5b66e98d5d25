-- The first job of a ready list.
-- requires  _job

-- The first id of a topic's ready list that is no ghost. The ghosts before it are taken out, `most` of them or a few more; nil if
-- there are more than these, or than the call has time for (drop_ghosts), or if there is no job.
local function first_in_list(topic, most)
  local dropped, window = 0, 1
  while dropped < most do
    local ghosts, looked = drop_ghosts(topic, 0, window)
    if ghosts < looked then return call('LINDEX', queue_key(topic), '0') end
    if looked < window then return nil end
    dropped, window = dropped + ghosts, math.min(500, window * 2)
  end
  return nil
end
