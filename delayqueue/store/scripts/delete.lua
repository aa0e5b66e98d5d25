-- Ends jobs that are no longer wanted.
-- requires  _end
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = in any state), message
-- returns a code for each
-- keeps: with a receipt only the reservation that it names is ended.

return function(ARGV)
  return end_jobs(ARGV, 'cancelled', 'deleted')
end
