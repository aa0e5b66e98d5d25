-- Drops a parcel (export.lua) that its bucket has imported.
-- requires  _call
-- flags  allow-oom
-- layout  follows
-- waits  never
-- ARGV  number of the other bucket, number of the parcel
-- returns { 1 }, or { 0 } if that parcel no longer exists

return function(ARGV)
  local key = parcel_key(ARGV[1])
  if call('LINDEX', key, 0) ~= ARGV[2] then return { 0 } end
  return { call('DEL', key) }
end
