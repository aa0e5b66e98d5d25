-- Ends the jobs of a tag, in any topic and state; those that have already ended stay as they are.
-- requires  _tag
-- flags  allow-oom
-- waits  changes
-- ARGV  tag name, topic ("" = every), jobs looked at, about, where to go on (_tag.lua)
-- returns where to go on; the answer says how many were cancelled

return function(ARGV)
  local name, topic, limit = ARGV[1], ARGV[2], ARGV[3]

  local after, count = each_tagged(name, topic, limit, { unpack(ARGV, 4) }, function(id, job)
    finish_job(id, job, 'cancelled', '')
    tell('cancelled', job.topic, 1)
    return OK
  end)
  return after, nil, count
end
