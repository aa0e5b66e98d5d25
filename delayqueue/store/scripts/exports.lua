-- The buckets to which parcels of this bucket are on their way.
-- requires  _call
-- flags  no-writes
-- layout  follows
-- returns { number, ... }

return function(ARGV)
  local under_way = {}
  for _, target in ipairs(call('HKEYS', SENT)) do
    if call('EXISTS', parcel_key(target)) == 1 then under_way[#under_way + 1] = tonumber(target) end
  end
  return under_way
end
