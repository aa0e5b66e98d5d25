-- Reads a page of the ids of a tag's jobs, in any topic. Changes nothing.
-- requires  _scan_tag
-- flags  no-writes
-- ARGV  tag name, ids read, about, where to go on (_scan_tag.lua)
-- returns { where to go on, { id, ... } }

return function(ARGV)
  return { scan_tag(ARGV[1], ARGV[3], ARGV[2]) }
end
