-- Checks a piece of the bucket for damage, as inspect.lua does without repairs: also on a store that takes no writes. Changes nothing.
-- requires  inspect
-- flags  no-writes
-- ARGV  as of inspect.lua, the first one "0"
-- returns as inspect.lua does
return function(ARGV) return verbs.inspect(ARGV) end
